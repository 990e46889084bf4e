//! Where sessions lie: below the state dir, and nowhere else.

use std::path::{Path, PathBuf};

use session_core::{Content, EnvChange, Mount, Purpose, StateLayout};

use super::Subject;
use super::turns::Stage;

const ONE: &str = "/srv/state/one";
const TWO: &str = "/srv/state/two";

impl Subject {
    fn layout(&self, stage: &Stage, state_dir: Option<&str>) -> StateLayout {
        self.dialect.state(state_dir.map(Path::new), &stage.env, stage.installation.version.as_ref())
    }

    /// Without a sandbox, and within one.
    fn layouts(&self, stage: &Stage, state_dir: &str) -> [StateLayout; 2] {
        let version = stage.installation.version.as_ref();
        let sandboxed = self.dialect.sandboxed_state(Path::new(state_dir), &stage.env, version);
        [self.layout(stage, Some(state_dir)), sandboxed]
    }
}

/// Whether the values of the environment lead into this folder.
fn leads_to(layout: &StateLayout, folder: &str) -> bool {
    layout.env.iter().any(|change| match change {
        EnvChange::Set(_, value) => value.to_string_lossy().contains(folder),
        EnvChange::Remove(_) => false,
    })
}

/// Needs a state path. Everything that a run writes lies below the state dir, at the place claimed, and the agent is
/// told so. Without the claim, a state dir changes nothing.
pub(super) fn sessions_lie_in_the_state_dir(subject: &Subject) {
    let (one, two) = subject.two_ids();
    for mut stage in subject.stages() {
        let layout = subject.layout(&stage, Some(ONE));
        let Some(below) = stage.installation.capabilities.session_state_path else {
            let without = subject.layout(&stage, None);
            assert_eq!(layout, without, "{}: no state path is claimed, and one is used", stage.version());
            continue;
        };
        let layouts = subject.layouts(&stage, ONE);
        let [plain, sandboxed] = &layouts;
        assert_eq!(
            plain.sessions,
            sandboxed.sessions,
            "{}: a run in a sandbox does not find what one without it kept",
            stage.version()
        );
        for layout in &layouts {
            let place = Path::new(ONE).join(below);
            let sessions = layout.sessions.clone().unwrap_or_default();
            assert!(
                sessions.starts_with(&place),
                "{}: sessions lie in {}",
                stage.version(),
                sessions.display()
            );
            for link in &layout.links {
                assert!(link.at.starts_with(ONE), "{}: a link at {}", stage.version(), link.at.display());
            }
            for hidden in &layout.hidden {
                assert!(
                    hidden.starts_with(ONE),
                    "{}: {} would be taken away",
                    stage.version(),
                    hidden.display()
                );
            }
            // A login may be refreshed, where it is shown at all.
            let written = |mount: &&Mount| {
                mount.content == Content::Host && !mount.read_only && mount.purpose != Purpose::Login
            };
            for mount in layout.mounts.iter().filter(written) {
                assert!(
                    mount.path.starts_with(ONE),
                    "{}: written in {}",
                    stage.version(),
                    mount.path.display()
                );
            }
            for scratch in &layout.scratch {
                let harmless = scratch.starts_with(ONE) && !sessions.starts_with(scratch);
                assert!(harmless, "{}: {} would be emptied", stage.version(), scratch.display());
            }
        }
        stage.state_dir = Some(PathBuf::from(ONE));
        for mode in Subject::modes(&stage, &one, &two) {
            let command = stage.commands(&*subject.dialect, mode);
            let by_command = command.is_ok_and(|command| command.mention(ONE));
            for (layout, place) in layouts.iter().zip(["without a sandbox", "in a sandbox"]) {
                let told = leads_to(layout, ONE) || by_command;
                assert!(told, "{}: {place}, the agent is not told of its state dir", stage.version());
            }
        }
    }
}

/// Nothing of one mailbox is reachable from another, nor are the user's own sessions: neither by what is written, nor by
/// what a sandbox shows.
pub(super) fn two_state_dirs_share_nothing(subject: &Subject) {
    let (one, two) = subject.two_ids();
    for mut stage in subject.stages() {
        if stage.installation.capabilities.session_state_path.is_none() {
            continue;
        }
        let home = subject.layout(&stage, None);
        for (here, there) in [(ONE, TWO), (TWO, ONE)] {
            let other = subject.layout(&stage, Some(there));
            let closed = [Some(PathBuf::from(there)), other.sessions.clone(), home.sessions.clone()];
            let layouts = subject.layouts(&stage, here);
            let mounts = layouts.iter().flat_map(|layout| &layout.mounts);
            // What is empty shows nothing.
            for mount in mounts.filter(|mount| mount.content == Content::Host) {
                for closed in closed.iter().flatten() {
                    let shown = closed.starts_with(&mount.path) || mount.path.starts_with(closed);
                    assert!(
                        !shown,
                        "{}: {} shows {}",
                        stage.version(),
                        mount.path.display(),
                        closed.display()
                    );
                }
            }
            for link in layouts.iter().flat_map(|layout| &layout.links) {
                for closed in closed.iter().flatten() {
                    let shown = closed.starts_with(&link.target) || link.target.starts_with(closed);
                    assert!(
                        !shown,
                        "{}: {} leads to {}",
                        stage.version(),
                        link.at.display(),
                        closed.display()
                    );
                }
            }
            for layout in &layouts {
                assert!(!leads_to(layout, there), "{}: {layout:?} leads to {there}", stage.version());
            }
            stage.state_dir = Some(PathBuf::from(here));
            for mode in Subject::modes(&stage, &one, &two) {
                let command = stage.commands(&*subject.dialect, mode);
                assert!(
                    !command.is_ok_and(|command| command.mention(there)),
                    "{}: {mode:?}",
                    stage.version()
                );
            }
        }
    }
}

/// Sessions stay where the agent keeps them by itself.
pub(super) fn without_a_state_dir_nothing_is_changed(subject: &Subject) {
    for stage in subject.stages() {
        let layout = subject.layout(&stage, None);
        assert!(layout.env.is_empty(), "{}: {:?}", stage.version(), layout.env);
        assert!(layout.links.is_empty(), "{}: {:?}", stage.version(), layout.links);
        assert!(layout.scratch.is_empty(), "{}: {:?}", stage.version(), layout.scratch);
        assert!(layout.hidden.is_empty(), "{}: {:?}", stage.version(), layout.hidden);
        assert!(layout.mounts.is_empty(), "{}: {:?} are of all mailboxes", stage.version(), layout.mounts);
        let below =
            [ONE, TWO].iter().any(|dir| layout.sessions.iter().any(|sessions| sessions.starts_with(dir)));
        assert!(!below, "{}: {:?} is a state dir that nobody gave", stage.version(), layout.sessions);
    }
}
