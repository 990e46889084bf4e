//! What is wrong with a store: in words, and the case that is meant to catch it.

macro_rules! flaws {
    ($($flaw:ident = $words:literal, $meant:ident;)*) => {
        /// What is wrong with a store.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Flaw { None, $($flaw,)* }

        /// Every mutant.
        pub(super) const MUTANTS: &[(&str, &str, Flaw)] =
            &[$(($words, stringify!($meant), Flaw::$flaw),)*];
    };
}

flaws! {
    NothingIsEmpty = "makes an empty document of nothing", nothing_is_absent;
    TellsAnotherRevision = "loads under another revision than it told", a_document_comes_back;
    LosesTheLastWrite = "loses the last write", the_last_document_stands;
    LeavesTheTail = "leaves the end of a longer document", the_last_document_stands;
    KeepsTextOnly = "keeps text only", any_bytes_come_back;
    TearsLargeDocuments = "tears a large document", a_large_document_comes_back;
    ClaimsSomethingElse = "claims less once it has something to lose", the_claims_are_the_same_every_time;
    TakesAbsentForAny = "takes absent for any", absent_writes_once;
    IgnoresGuards = "ignores guards", a_revision_guards_its_document;
    IgnoresRevisions = "asks whether there is a document, not which", a_revision_guards_its_document;
    HidesTheState = "does not tell the state when it refuses", a_revision_guards_its_document;
    WritesWhatItRefuses = "writes what it refuses", a_failed_guard_changes_nothing;
    ReusesRevisions = "reuses revisions after a removal", a_revision_is_never_used_again;
    KeepsWhatItRemoved = "answers a removal and forgets it", a_removed_document_is_gone;
    RemovesWhateverTheGuard = "removes whatever the guard", a_removal_keeps_its_guard;
    FoldsCase = "folds case", no_two_keys_share_a_document;
    FoldsForms = "takes two Unicode forms for one", no_two_keys_share_a_document;
    CutsLongNames = "cuts long names", no_two_keys_share_a_document;
    MakesSlugs = "makes slugs of branches", no_two_keys_share_a_document;
    TrimsNames = "trims names", no_two_keys_share_a_document;
    IgnoresTheAgent = "has one document for all agents", no_two_keys_share_a_document;
    FoldsLogs = "writes one log for keys that look alike", no_two_keys_share_a_log;
    HasOneLeaseForAll = "has one lease for all keys", no_two_keys_share_a_lease;
    RepeatsAKey = "repeats a key on the next page", pages_make_up_the_whole;
    NeverSaysMore = "never says that there is more", pages_make_up_the_whole;
    IgnoresTheLimit = "ignores the limit of a page", a_page_keeps_its_limit;
    ListsRemovedKeys = "lists removed keys", what_was_removed_is_not_listed;
    ListsKeysWithALog = "lists keys that have a log alone", what_was_removed_is_not_listed;
    BeginsAnew = "begins anew after a key that is gone", a_list_goes_on_after_a_removed_key;
    ListsByTime = "lists by the time of the last write", a_list_is_whole_while_others_write;
    SortsTheLog = "keeps the log out of order", entries_keep_their_order;
    NumbersEntriesAlike = "gives all entries one number", entries_keep_their_order;
    ReadsFromTheNumber = "reads a log from a number on, not after it", entries_are_read_after_a_number;
    LosesTheLogWithTheDocument = "loses the log with the document", a_log_outlives_its_document;
    KeepsTheFirstLine = "keeps the first line of an entry", text_in_a_log_is_opaque;
    HasTwoHolders = "has two holders of one lease", one_runner_holds_a_key;
    NamesWhoAsks = "names who asks, not who holds", a_refused_lease_names_its_holder;
    NamesNobody = "claims to name holders and names nobody", a_refused_lease_names_its_holder;
    ClaimsNoNamesAndNames = "claims no names and names", a_refused_lease_names_its_holder;
    FreesNothing = "keeps a lease that was dropped", a_dropped_lease_is_free;
    FreesWhatItRefuses = "frees a lease when it refuses it", a_dropped_lease_is_free;
    NumbersGrantsAlike = "gives all grants one number", grants_are_numbered;
    LocksTheDocument = "locks the document with the lease", a_lease_stops_no_writer;
    LeaksADroppedQuestion = "leaks a lease that nobody waits for", a_dropped_question_leaves_no_lease;
    HoldsByHandle = "holds a lease against its own handle alone", a_lease_excludes_every_handle;
    SetsAsideByRemoving = "sets aside by removing", what_is_set_aside_is_kept;
    KeepsTheLastOneAside = "keeps the last one that was set aside", what_is_set_aside_is_kept;
    CopiesAside = "sets a copy aside", what_is_set_aside_is_gone;
    SetsAsideWhateverTheGuard = "sets aside whatever the guard", setting_aside_keeps_its_guard;
    CorruptIsAbsent = "returns absent for corrupt", damage_is_no_absence;
    WritesOverDamage = "writes over what is damaged", damage_is_not_written_over;
    CannotSetDamageAside = "cannot set aside what it cannot read", damage_can_be_set_aside;
    FailsForOne = "lists nothing because of one that is damaged", damage_stays_with_its_key;
    TakesNewerForOlder = "writes over what is newer", a_newer_document_is_left_alone;
    SetsNewerAside = "sets aside what is newer", a_newer_document_is_left_alone;
    AwayIsEmpty = "is empty when it is out of reach", a_store_out_of_reach_is_not_empty;
    SharesStateDirs = "shares a state dir between twins", state_dirs_are_apart;
    NestsStateDirs = "lays a state dir into another's", state_dirs_are_apart;
    RemovesStateWithTheDocument = "removes the state dir with the document", a_state_dir_stays_where_it_is;
    KeepsState = "keeps a state dir that it removed", a_removed_state_dir_is_gone_and_no_other_is;
    EmptiesState = "leaves an empty state dir where it removed one", a_removed_state_dir_is_gone_and_no_other_is;
    RemovesTheMailboxsState = "removes the state dirs of all agents", a_removed_state_dir_is_gone_and_no_other_is;
    NeverHadState = "says of no state dir that it was there", a_removed_state_dir_is_gone_and_no_other_is;
    RemovesThroughLinks = "removes what a link leads to", a_removed_state_dir_is_gone_and_no_other_is;
    MeasuresThroughLinks = "measures what a link leads to", a_state_dir_is_measured;
    MeasuresNothing = "measures no state dir", a_state_dir_is_measured;
    ListsStateWithADocument = "lists a state dir whose key has a document", leftovers_are_what_no_document_leads_to;
    TakesAllForDead = "takes no mailbox for a live one", leftovers_are_what_no_document_leads_to;
    RemovesUnsaid = "removes a leftover without a word", a_removed_leftover_is_gone_and_told;
    KeepsLeftovers = "keeps a leftover that it removed", a_removed_leftover_is_gone_and_told;
    RemovesWhatIsRun = "removes a leftover whose key is run", a_leftover_that_is_run_is_left;
    RemovesWhatChanged = "removes a leftover that has a document by now", a_leftover_that_changed_is_left;
    BelievesALeftover = "removes whatever a leftover names", what_is_no_leftover_is_left;
    LeavesStateOpen = "leaves a state dir open to others", a_state_dir_is_private;
    FollowsLinks = "follows a link to another's state dir", what_is_planted_is_no_state_dir;
    ForgetsOnReopen = "forgets what it wrote when it is opened again", what_was_written_is_there_again;
    RestartsLogs = "forgets its logs when it is opened again", what_was_written_is_there_again;
    BringsBackOnReopen = "brings back what was removed when it is opened again", what_was_removed_stays_removed;
    RestartsRevisions = "counts revisions anew when it is opened again", revisions_are_new_after_reopening;
    IgnoresFences = "writes whoever lost the lease", who_lost_a_lease_writes_nothing;
    FencesByHolder = "keeps a lost lease from writing only while somebody holds it", who_lost_a_lease_writes_nothing;
    FencesTheSecond = "keeps every holder but the first from writing", who_lost_a_lease_writes_nothing;
    FencesAfterARefusal = "takes a refused question for a grant", a_lease_is_good_until_the_next_grant;
    LetsGoBeforeItWrites = "frees the lease before a dropped write is done", a_dropped_write_is_over_before_the_next_grant;
    ForgetsGrants = "forgets its grants when it is opened again", a_lost_lease_stays_lost;
    RestartsNumbers = "counts grants anew when it is opened again", numbers_go_on_after_reopening;
    ChecksThenWrites = "checks the guard, then writes", one_of_many_writers_wins;
    ComparesThenWrites = "compares the revision, then writes", no_update_is_lost;
    ChecksThenRemoves = "checks the guard, then removes", one_of_many_removals_is_done;
    ReadsTheLogThenWrites = "reads the log, then writes it", no_entry_is_lost;
    LooksThenTakes = "looks at the lease, then takes it", one_of_many_runners_holds;
    WritesInHalves = "writes in two halves", a_reader_sees_whole_documents;
    RemovesThenWrites = "removes the old document, then writes the new one", a_dropped_write_is_whole_or_nothing;
}
