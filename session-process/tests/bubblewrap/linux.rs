//! The test, where there is `bwrap`.

use std::fs;
use std::process::{Command, Output};

use session_core::{EnvMap, Mount, MountPlan, Purpose};
use session_process::{Bubblewrap, Environment, Invocation, Launcher as _};

fn inside(plan: &MountPlan, script: &str) -> Option<Output> {
    let env: EnvMap = Environment::bare().pass(&["PATH"]).map().clone();
    let args = vec!["-c".into(), script.into()];
    let command = Invocation { program: "/bin/sh".into(), args, env, cwd: plan.cwd().to_owned() };
    let start = Bubblewrap::new().wrap(command, plan).unwrap();
    Command::new(&start.program).args(&start.args).env_clear().envs(start.env.iter()).output().ok()
}

fn system() -> impl Iterator<Item = Mount> {
    let system = ["/bin", "/lib", "/lib64", "/sbin", "/usr", "/etc"];
    system.map(|path| Mount::read_only(path, Purpose::System).optional()).into_iter()
}

/// Whether a command can be run in it here.
pub(crate) fn works() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().canonicalize().unwrap();
    let mounts = system().chain([Mount::writable(&work, Purpose::WorkTree)]);
    let plan = MountPlan::new(&work, Vec::new(), mounts);
    inside(&plan, "true").is_some_and(|output| output.status.success())
}

/// As root, this is what capabilities would allow; as anybody else, what no sandbox may give.
pub(crate) fn nothing_inside_undoes_a_mount() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().canonicalize().unwrap();
    let (store, state) = (work.join("store"), work.join("store/state"));
    for folder in [&state, &work.join("to-read")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(store.join("record"), "secret").unwrap();
    fs::write(work.join("to-read/file"), "as it was").unwrap();
    let mounts = system().chain([
        Mount::writable(&work, Purpose::WorkTree),
        Mount::empty(&store, Purpose::Cover),
        Mount::writable(&state, Purpose::StateDir),
        Mount::read_only(work.join("to-read"), Purpose::Config),
    ]);
    let plan = MountPlan::new(&work, Vec::new(), mounts);
    let script = "umount store/state && echo unmounted; umount -l store && echo unmounted
        cat store/record
        mount -o remount,bind,rw to-read && echo remounted
        echo changed > to-read/file
        mknod disk b 7 0 && echo made
        mount -t tmpfs none store && echo mounted
        (: < /proc/sys/kernel/core_pattern) && (: >> /proc/sys/kernel/core_pattern) && echo told the kernel
        grep CapEff /proc/self/status; echo done > own";
    let output = inside(&plan, script).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "CapEff:\t0000000000000000\n", "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_to_string(work.join("to-read/file")).unwrap(), "as it was");
    assert_eq!(fs::read_to_string(work.join("own")).unwrap(), "done\n", "it did run to its end");
}
