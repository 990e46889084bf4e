//! What is wrong with a checkpointer: in words, and the case that is meant to catch it.

macro_rules! flaws {
    ($($flaw:ident = $words:literal, $meant:ident;)*) => {
        /// What is wrong with a checkpointer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Flaw { None, $($flaw,)* }

        /// Every mutant.
        pub(super) const MUTANTS: &[(&str, &str, Flaw)] =
            &[$(($words, stringify!($meant), Flaw::$flaw),)*];
    };
}

flaws! {
    MissesDeletions = "does not bring back what was deleted", a_tree_comes_back;
    KeepsWhatIsNew = "keeps what is new", a_tree_comes_back;
    CountsFolders = "counts folders as files", a_checkpoint_tells_its_tree;
    CoversTheFolderAlone = "covers the folder that it is given, not the tree", a_checkpoint_tells_its_tree;
    LosesTheLabel = "keeps a label without its prompt", a_checkpoint_tells_its_tree;
    KnowsTheFirstFilesAlone = "follows the files of its first checkpoint alone", shell_edits_are_taken_back;
    DropsEmptyFolders = "drops empty folders", an_empty_folder_comes_back;
    KeepsTextNames = "keeps names as text", names_of_any_bytes_come_back;
    TrimsNames = "trims names", names_of_any_bytes_come_back;
    GoesByTime = "goes by size and time", a_backdated_change_is_seen;
    LooksAtNamedPathsAlone = "does not look below a folder that is named", known_changes_are_enough;
    TrustsFirstChanges = "believes that nothing changed since a checkpoint that there is not", known_changes_are_enough;
    ForgetsModes = "forgets modes", modes_come_back;
    KeepsTheRunBitAlone = "keeps no more of a mode than whether it runs", modes_come_back;
    ComparesContentAlone = "does not compare modes", a_change_of_mode_is_told;
    SetsSetuid = "sets bits beside the permissions", setuid_stays_off;
    FollowsLinks = "covers what a link leads to", links_come_back_as_links;
    KeepsTheKind = "leaves a path whose kind changed", what_stands_at_a_path_changes_its_kind;
    HidesSpecialFiles = "does not name sockets and pipes", what_is_no_file_is_named;
    RemovesSpecialFiles = "clears away what it does not cover", what_is_no_file_is_named;
    HidesLargeFiles = "does not name large files", what_is_too_large_is_named;
    HidesClosedFiles = "leaves out what has no mode, and does not say so", what_may_not_be_read_is_named;
    IgnoresTracked = "leaves out what git tracks, if a rule names it", what_is_ignored_is_named;
    HidesIgnored = "does not name what is ignored", what_is_ignored_is_named;
    SkipsNested = "skips nested repositories", a_nested_repository_is_covered;
    CoversGit = "covers the .git of a nested repository", a_nested_repository_is_covered;
    CoversItself = "covers its own store", the_store_is_not_covered;
    TakesHomes = "takes a home for a tree", a_home_is_refused;
    RestoresEverything = "puts everything back, whatever was asked for", only_the_given_paths_are_touched;
    RewritesNeighbours = "writes the neighbours of a path anew", only_the_given_paths_are_touched;
    WritesInPlace = "writes files in place", a_hard_link_keeps_its_content;
    GoesThroughLinks = "goes through links", nothing_goes_through_a_link;
    TakesAnyPath = "takes a path that leads out of the tree", nothing_outside_is_touched;
    ForgetsToTell = "does not tell what it left", every_path_is_told;
    TellsDone = "tells every path as done", every_path_is_told;
    IgnoresFrom = "ignores in what state a path was", what_changed_meanwhile_is_left;
    IgnoresLaterModes = "does not see that a mode was changed meanwhile", what_changed_meanwhile_is_left;
    WritesWhatIsRight = "writes again what is right", what_is_there_already_is_done;
    LeavesWhatIsRight = "calls right what somebody else put right a change", what_is_there_already_is_done;
    RemovesFullFolders = "removes folders with all that is in them", a_folder_with_something_new_is_left;
    RemovesWhatItHadNot = "removes whatever was not there", what_somebody_else_made_is_kept;
    MovesOutOfTheStore = "moves contents out of its store", a_restore_is_taken_back;
    HasNoJournal = "does not know what was cut off", a_dropped_restore_is_finished;
    KeepsItsJournal = "recovers time and again", a_dropped_restore_is_finished;
    ListsWhatIsHalf = "lists a checkpoint before it is whole", a_dropped_take_is_whole_or_nothing;
    IgnoresTheLimit = "reads more than the limit", a_content_is_read_as_it_was;
    ReadsFolders = "reads a folder as an empty file", a_content_is_read_as_it_was;
    NamesTopsAlone = "names a folder for all that went with it", a_diff_tells_what_changed;
    DiffsBackwards = "takes from for to", a_diff_tells_what_changed;
    HidesFolders = "tells of no folder that is left out by now", what_is_left_out_by_now_is_told;
    ListsNewestFirst = "lists the newest first", a_list_is_in_order;
    ForgetsOnReopen = "forgets when it is opened again", what_was_taken_is_there_again;
    UsesIdsAgain = "writes over a checkpoint of the same id", an_id_is_never_used_again;
    StaysBroken = "stays broken after a failure", a_failed_take_heals;
    WaitsForNobody = "clears away what another one is about to keep", what_is_taken_at_once_is_whole;
    SharesKeys = "has one list for all keys", no_key_sees_anothers;
    FoldsKeys = "folds case of keys", no_key_sees_anothers;
    ReadsAnyId = "reads any id for any key", no_key_sees_anothers;
    ForgetsForOthers = "drops by id alone", no_key_sees_anothers;
    KeepsWhatItForgot = "hides what it dropped from lists alone", what_was_forgotten_is_gone;
    CountsTheUnknown = "counts ids that it does not know as dropped", what_was_forgotten_is_gone;
    DropsSharedContent = "drops contents that others need", forgetting_takes_nothing_from_the_kept;
    MixesTrees = "puts a tree back to another's state", two_trees_are_apart;
    TrustsContents = "does not check contents", damage_is_never_wrong_content;
    HidesDamaged = "does not list what is damaged", a_damaged_checkpoint_is_listed_as_such;
    FailsForOne = "lists nothing because of one that is damaged", a_damaged_checkpoint_is_listed_as_such;
    ListsLeftovers = "lists what a killed process left", a_damaged_checkpoint_is_listed_as_such;
    TakesTheFolder = "takes a folder for its own top", the_top_of_a_tree_is_found;
    TakesTheOutermost = "takes the outermost repository", the_top_of_a_tree_is_found;
    NeedsAGitFolder = "knows no linked work tree", the_top_of_a_tree_is_found;
    WritesInTheTree = "writes in the tree when it takes a checkpoint", nothing_is_written_by_looking;
    WritesInGit = "writes a ref of its own in .git", the_repository_is_as_it_was;
    AsksGit = "asks git what changed", hooks_and_filters_do_not_run;
    LeavesFolderModes = "leaves the mode of a folder that is there", modes_come_back;
    FoldsPaths = "folds case of paths", every_walk_ends_as_the_model_says;
    LeavesModesToTheUmask = "leaves modes to the umask", modes_come_back_under_any_umask;
    OpensItsStore = "opens its store to others", the_store_is_private;
}
