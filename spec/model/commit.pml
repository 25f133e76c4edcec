// SPDX-License-Identifier: Apache-2.0
// One collective save: N ranks, each with a blob; rank 0 commits. spec/commit.md; lib/saver, lib/writer.
// README.md says what is modelled, under which axioms, and how steps are named.

// quick: N=2 FAULTS=2
// quick: N=3 FAULTS=1
// full: N=2 FAULTS=3
// full: N=3 FAULTS=3
// unreached: blob missing; every summary stands for a durable blob, so that this check is a second line of defence

#ifndef N
#define N 2
#endif

// Protective steps that a run may leave out: name, number, what is done instead.
#define M_no_blob_sync 1  // a blob is not synced
#define M_sync_retried 2  // a failed sync of a blob is repeated, and then believed
#define M_no_blob_directory_sync 3  // writers do not sync the directory
#define M_no_index_sync 4  // the index is not synced
#define M_no_marker_sync 5  // the unpublished marker is not synced
#define M_no_sync_before_publication 6  // the committer does not sync the directory before the publication
#define M_not_read_back 7  // an error of the publication is believed
#define M_not_removed_before_second_look 8  // the second look comes without the removal before it
#define M_no_sync_after_publication 9  // the committer does not sync the directory after the publication
#define M_directory_sync_retried 10  // a failed sync after the publication is repeated, and then believed
#define M_one_look_only 11  // no marker at the first look is taken for the answer
#define M_reported_before_sync 12  // the verdict is reported before the sync after the publication
#define M_agreed_before_sync 13  // summaries leave a rank before its blob is synced
#define M_failed_rank_returns_early 14  // a rank that failed does not take part in the agreement
#define M_published_before_agreed 15  // rank 0 does not wait for the agreement
#define M_lost_after_summary_is_failure 16  // a communicator that fails after the summary was sent is taken for a failure
#define M_lost_verdict_is_failure 17  // a verdict that does not arrive is taken for a failure
#define M_removed_after_unknown 18  // blobs are removed although the outcome is unknown
#define M_last_meeting_skipped 19  // a rank that failed does not come to the last meeting

#include "steps.pml"
#include "files.pml"

// Files, as bits of the masks: the blob of rank r, the index, the unpublished marker, and COMMIT, which is a second
// name of the marker's content.
#define BLOB(r) (1 << (r))
#define BLOBS (BLOB(N) - 1)
#define INDEX (1 << N)
#define MARKER (2 << N)
#define COMMIT (4 << N)
#define OWN(r) (BLOB(r) | ((r) == 0) * (INDEX | MARKER | COMMIT))
#define RANK(r) BLOB(r)

byte dead;           // ranks
byte gone;           // ranks that make no further collective call: dead, or their communicator failed
bool is_delayed;     // the request to publish is still under way

#define COMMITTED 1
#define FAILED 2
#define UNKNOWN 3
byte reported[N];
bool is_success_told, is_failure_told;

inline tell(r, result) {
  reported[r] = result;
  is_success_told = is_success_told || result == COMMITTED;
  is_failure_told = is_failure_told || result == FAILED;
  if
  :: result == COMMITTED -> SAY(r, verdict, reported committed)
  :: result == FAILED -> SAY(r, verdict, reported failed)
  :: result == UNKNOWN -> SAY(r, verdict, reported unknown)
  fi
}

// Collective calls, one of each kind at most. `order` holds the kind of the n-th call.
#define PREFLIGHT 0
#define AGREE 1
#define GATHER 2
#define VERDICT 3
#define MEET 4
byte arrived[5];  // ranks whose contribution is there
byte order[5];
bool has_failed[2];  // of PREFLIGHT and AGREE: some rank said so
byte announced;      // with VERDICT, by rank 0

inline enter(r, call) {
  assert(order[calls] == 0 || order[calls] == call + 1 || MUTANT(published_before_agreed));  // R-CMT-16
  order[calls] = call + 1;
  calls++;
  arrived[call] = arrived[call] | RANK(r)
}

// Waits for the contributions of `needed`. It fails here because somebody is gone, or because the deadline passed
// though all of them live; then the own contribution was delivered or not.
inline await(r, call, needed) {
  atomic {
    if
    :: HAS_ALL(arrived[call], needed) -> is_lost = false
    :: (needed & gone & ~arrived[call]) != 0 -> is_lost = true
    :: FAULT; is_lost = true;
       if
       :: arrived[call] = arrived[call] & ~RANK(r)
       :: true
       fi
    fi;
    if
    :: is_lost -> gone = gone | RANK(r); SAY(r, agree, communicator failed)
    :: else
    fi
  }
}

// A sync of content or names that takes place, is left out by a mutant, or fails (R-CMT-13).
inline sync_blob(r) {
  if
  :: MUTANT(no_blob_sync) -> SAY(r, sync blobs, skipped)
  :: BUT(no_blob_sync) -> sync_content(BLOB(r)); SAY(r, sync blobs, blob synced)
  :: FAULT; fs.spoilt = fs.spoilt | BLOB(r); SAY(r, sync blobs, blob sync failed);
     if
     :: MUTANT(sync_retried) -> sync_content(BLOB(r)); SAY(r, sync blobs, blob synced)
     :: BUT(sync_retried) -> outcome = FAILED
     fi
  fi
}

inline sync_blob_name(r) {
  if
  :: MUTANT(no_blob_directory_sync) -> SAY(r, sync blobs, skipped)
  :: BUT(no_blob_directory_sync) -> sync_names(OWN(r)); SAY(r, sync blobs, directory synced)
  :: FAULT; spoil_names(OWN(r)); outcome = FAILED; SAY(r, sync blobs, directory sync failed)
  fi
}

// --- The committer, from "check blobs" to "publish". Sets `outcome`.

inline check_there() {
  if
  :: HAS_ALL(fs.now, BLOBS) -> SAY(0, check blobs, blobs there)
  :: !HAS_ALL(fs.now, BLOBS) -> outcome = FAILED; SAY(0, check blobs, blob missing)
  :: FAULT; outcome = FAILED; SAY(0, check index, index refused)
  fi
}

// A failed write leaves a name and a part of the content.
inline write_index() {
  create(INDEX);
  if
  :: fs.whole = fs.whole | INDEX; SAY(0, write index, index written)
  :: FAULT; outcome = FAILED; SAY(0, write index, writing the index fails)
  fi
}

inline write_marker() {
  create(MARKER);
  if
  :: fs.whole = fs.whole | MARKER; SAY(0, write index, unpublished marker written)
  :: FAULT; outcome = FAILED; SAY(0, write index, writing the marker fails)
  fi
}

inline sync_index() {
  if
  :: MUTANT(no_index_sync) -> SAY(0, write index, skipped)
  :: BUT(no_index_sync) -> sync_content(INDEX); SAY(0, write index, index synced)
  :: FAULT; fs.spoilt = fs.spoilt | INDEX; outcome = FAILED; SAY(0, write index, index sync failed)
  fi
}

inline sync_marker() {
  if
  :: MUTANT(no_marker_sync) -> SAY(0, write index, skipped)
  :: BUT(no_marker_sync) -> sync_content(MARKER); SAY(0, write index, marker synced)
  :: FAULT; fs.spoilt = fs.spoilt | MARKER; outcome = FAILED; SAY(0, write index, marker sync failed)
  fi
}

inline sync_before() {
  if
  :: MUTANT(no_sync_before_publication) -> SAY(0, write index, skipped)
  :: BUT(no_sync_before_publication) -> sync_names(OWN(0)); SAY(0, write index, directory synced)
  :: FAULT; spoil_names(OWN(0)); outcome = FAILED; SAY(0, write index, directory sync failed)
  fi
}

inline publish_marker() {
  if
  :: create(COMMIT); SAY(0, publish, published)
  :: FAULT; has_error = true; SAY(0, publish, publication failed)
  :: FAULT; has_error = true; is_delayed = true; SAY(0, publish, publication failed)
  :: FAULT; has_error = true; create(COMMIT); SAY(0, publish, publication reply lost)
  fi
}

// The table of spec/commit.md section 2.1. nothing: what no marker there means.
inline read_back(nothing) {
  if
  :: MUTANT(not_read_back) -> outcome = FAILED; SAY(0, publish, skipped)
  :: BUT(not_read_back) && HAS(fs.now, COMMIT) -> has_error = false; SAY(0, publish, own marker seen)
  :: BUT(not_read_back) && !HAS(fs.now, COMMIT) -> outcome = nothing; SAY(0, publish, no marker seen)
  :: FAULT; outcome = UNKNOWN; SAY(0, publish, marker unreadable)
  fi
}

inline remove_unpublished() {
  if
  :: MUTANT(not_removed_before_second_look) -> SAY(0, publish, skipped)
  :: BUT(not_removed_before_second_look) -> remove(MARKER); SAY(0, publish, unpublished marker removed)
  :: FAULT; outcome = UNKNOWN; SAY(0, publish, removal failed)
  fi
}

inline sync_after() {
  if
  :: MUTANT(no_sync_after_publication) -> outcome = COMMITTED; SAY(0, publish, skipped)
  :: BUT(no_sync_after_publication) -> outcome = COMMITTED; sync_names(OWN(0)); SAY(0, publish, directory synced)
  :: FAULT; spoil_names(OWN(0)); SAY(0, publish, directory sync failed);
     if
     :: MUTANT(directory_sync_retried) -> outcome = COMMITTED; sync_names(OWN(0)); SAY(0, publish, directory synced)
     :: BUT(directory_sync_retried) -> outcome = UNKNOWN
     fi
  fi
}

inline commit() {
  atomic { check_there() };
  if :: outcome != 0 -> goto decided :: else fi;
  atomic { write_index() };
  if :: outcome != 0 -> goto clean_up :: else fi;
  atomic { sync_index() };
  if :: outcome != 0 -> goto clean_up :: else fi;
  atomic { write_marker() };
  if :: outcome != 0 -> goto clean_up :: else fi;
  atomic { sync_marker() };
  if :: outcome != 0 -> goto clean_up :: else fi;
  atomic { sync_before() };
  if :: outcome != 0 -> goto clean_up :: else fi;
  atomic { publish_marker() };
  if
  :: has_error ->
     atomic { read_back(0) };
     if :: outcome != 0 -> goto clean_up :: else fi;
     if
     :: has_error && MUTANT(one_look_only) -> outcome = FAILED; goto clean_up
     :: has_error && BUT(one_look_only) ->
        atomic { remove_unpublished() };
        if :: outcome != 0 -> goto clean_up :: else fi;
        atomic { read_back(FAILED) };
        if :: outcome != 0 -> goto clean_up :: else fi
     :: else
     fi
  :: else
  fi;
  if
  :: MUTANT(reported_before_sync) -> outcome = COMMITTED
  :: BUT(reported_before_sync) ->
     atomic { sync_after() };
     if
     :: outcome == COMMITTED -> atomic { remove(MARKER); SAY(0, publish, unpublished marker removed) }
     :: else
     fi
  fi;
clean_up:
  if
  :: outcome == FAILED ->
     atomic { remove(MARKER); SAY(0, publish, unpublished marker removed) };
     atomic { remove(INDEX); SAY(0, publish, index removed) }
  :: else
  fi;
decided:
  skip
}

// After a failure that rules the publication out. meets: the communicator still works.
inline abandon(r) { atomic { remove(BLOB(r)); SAY(r, verdict, blob removed) } }

proctype rank(byte r) {
  byte calls;
  byte outcome;  // of this rank's own work; of rank 0 after AGREE: of the commit
  bool is_lost, has_error;
  {
    // Preflight and plan: one agreement stands for theirs. Nothing was written yet.
    atomic {
      if
      :: true
      :: FAULT; has_failed[PREFLIGHT] = true; SAY(r, preflight, failed)
      fi;
      enter(r, PREFLIGHT)
    };
    await(r, PREFLIGHT, BLOBS);
    if :: is_lost || has_failed[PREFLIGHT] -> outcome = FAILED; goto done :: else fi;

    atomic { create(BLOB(r)); SAY(r, write blobs, blob created) };
    atomic {
      if
      :: fs.whole = fs.whole | BLOB(r); SAY(r, write blobs, blob written)
      :: FAULT; outcome = FAILED; SAY(r, write blobs, blob not written)
      fi
    };
    if
    :: BUT(agreed_before_sync) && outcome == 0 -> atomic { sync_blob(r) }
    :: else
    fi;
    if
    :: BUT(agreed_before_sync) && outcome == 0 -> atomic { sync_blob_name(r) }
    :: else
    fi;

    if :: outcome != 0 && MUTANT(failed_rank_returns_early) -> goto done :: else fi;
    atomic { has_failed[AGREE] = has_failed[AGREE] || outcome != 0; enter(r, AGREE) };
    if
    :: r == 0 && MUTANT(published_before_agreed)
    :: r != 0 || BUT(published_before_agreed) -> await(r, AGREE, BLOBS)
    fi;
    if
    :: is_lost -> outcome = FAILED; abandon(r); goto done
    :: !is_lost && has_failed[AGREE] && (r != 0 || BUT(published_before_agreed)) -> outcome = FAILED; goto together
    :: else
    fi;

    // From here on the summaries are out of this rank's hands (R-CMT-20).
    atomic { enter(r, GATHER) };
    if
    :: r == 0 && BUT(published_before_agreed) -> await(r, GATHER, BLOBS)
    :: r == 0 && MUTANT(published_before_agreed)
    :: r != 0 -> await(r, GATHER, RANK(r))
    fi;
    if
    :: is_lost && r == 0 -> outcome = FAILED; abandon(r); goto done
    :: is_lost && r != 0 && MUTANT(lost_after_summary_is_failure) -> outcome = FAILED; abandon(r); goto done
    :: is_lost && r != 0 && BUT(lost_after_summary_is_failure) -> outcome = UNKNOWN; goto done
    :: else
    fi;
    if
    :: MUTANT(agreed_before_sync) -> atomic { sync_blob(r) }; atomic { sync_blob_name(r) }
    :: BUT(agreed_before_sync)
    fi;

    if
    :: r == 0 -> commit(); atomic { announced = outcome; enter(r, VERDICT) }; await(r, VERDICT, RANK(0))
    :: r != 0 -> atomic { enter(r, VERDICT) }; await(r, VERDICT, RANK(0))
    fi;
    if
    :: is_lost && r != 0 && MUTANT(lost_verdict_is_failure) -> outcome = FAILED; abandon(r); goto done
    :: is_lost && r != 0 && BUT(lost_verdict_is_failure) -> outcome = UNKNOWN; goto done
    :: is_lost && r == 0 -> goto done
    :: else -> outcome = announced
    fi;
    if
    :: outcome == FAILED -> goto together
    :: outcome == UNKNOWN && MUTANT(removed_after_unknown) -> abandon(r)
    :: else
    fi;
    goto done;

  together:  // an agreed failure: everybody removes what is his, then all meet
    abandon(r);
    if :: r != 0 && MUTANT(last_meeting_skipped) -> goto done :: else fi;
    atomic { enter(r, MEET) };
    await(r, MEET, BLOBS);

  done:
    atomic { gone = gone | is_lost * RANK(r); tell(r, outcome) }
  } unless { HAS(dead, RANK(r)) }
}

// --- What may happen at any time.

inline lose_content(file) {
  if
  :: HAS(fs.whole & ~fs.synced, file) -> fs.whole = fs.whole & ~(file); SAY(victim, -, content lost)
  :: true
  fi
}

inline lose_name(file) {
  if
  :: HAS(fs.now & ~fs.surely, file) ->
     fs.now = fs.now & ~(file);
     fs.maybe = fs.maybe & ~(file);
     SAY(victim, -, name lost)
  :: true
  fi
}

// The machine of one rank stops; what it did not sync is lost, each on its own, for those who live on.
inline lose_unsynced() {
  lose_content(BLOB(victim));
  lose_name(BLOB(victim));
  if
  :: victim == 0 ->
     lose_content(INDEX); lose_name(INDEX); lose_content(MARKER); lose_name(MARKER); lose_name(COMMIT)
  :: else
  fi
}

// All machines stop: every subset of what is not durable may be lost, and a reader opens what is left. One loss is
// enough to break what must hold, hence each is looked at alone; the marker's own survival is chosen first.
inline look_after_crash() {
  if
  :: is_success_told && !HAS(fs.surely, COMMIT) -> SAY_AS(crash, -, loses marker); assert(false)
  :: HAS(fs.maybe, COMMIT) && is_failure_told -> SAY_AS(crash, -, keeps marker); assert(false)
  :: HAS(fs.maybe, COMMIT) && !HAS_ALL(fs.surely, BLOBS) ->
     SAY_AS(crash, -, keeps marker loses name of blob); assert(false)
  :: HAS(fs.maybe, COMMIT) && !HAS_ALL(fs.synced, BLOBS) ->
     SAY_AS(crash, -, keeps marker loses content of blob); assert(false)
  :: HAS(fs.maybe, COMMIT) && !HAS(fs.surely, INDEX) ->
     SAY_AS(crash, -, keeps marker loses index); assert(false)
  :: HAS(fs.maybe, COMMIT) && !HAS(fs.synced, INDEX) ->
     SAY_AS(crash, -, keeps marker loses content of index); assert(false)
  :: HAS(fs.maybe, COMMIT) && !HAS(fs.synced, MARKER) ->
     SAY_AS(crash, -, keeps marker loses its content); assert(false)
  :: else
  fi
}

// A reader opens the directory while others work.
inline look_now() {
  if
  :: HAS(fs.now, COMMIT) && !(HAS_ALL(fs.now, BLOBS | INDEX) && HAS_ALL(fs.whole, BLOBS | INDEX | MARKER)) ->
     SAY_AS(reader, -, sees marker without its files); assert(false)
  :: HAS(fs.now, COMMIT) && is_failure_told -> SAY_AS(reader, -, sees marker); assert(false)
  :: else
  fi
}

proctype fate() {
  byte victim;
end:
  do
  :: atomic { has_crashes -> look_now(); look_after_crash() }
  :: atomic {
       is_delayed -> is_delayed = false;
       if
       :: HAS(fs.now, MARKER) -> create(COMMIT); SAY(0, publish, publication took effect late)
       :: else
       fi
     }
  :: atomic {
       FAULT;
       select(victim : 0 .. (N - 1));
       if
       :: HAS(dead, RANK(victim)) || reported[victim] != 0
       :: else ->
          dead = dead | RANK(victim);
          gone = gone | RANK(victim);
          if
          :: SAY(victim, -, process dies)
          :: SAY(victim, -, machine dies); lose_unsynced()
          fi
       fi;
       victim = 0
     }
  od
}

init {
  atomic {
    byte r;
    read_environment();
    for (r : 0 .. (N - 1)) { run rank(r) }
    r = 0;
    run fate()
  }
}
