// SPDX-License-Identifier: Apache-2.0
// Saves that link a blob of their parent instead of writing it, while the parent is deleted. Checkpoint 0 is the parent; rank
// k saves checkpoint k + 1, alone in a directory of its own, and all want the same blob. spec/commit.md section 2.7;
// lib/saver/frozen_blobs.cc. README.md says what is modelled, under which axioms, and how steps are named.

// quick: N=2 FAULTS=1
// full: N=3 FAULTS=2

#ifndef N
#define N 2
#endif
#define ACTOR rank

// Protective steps that a run may leave out: name, number, what is done instead.
#define M_link_not_synced 1  // the directory is not synced after a link
#define M_failed_link_believed 2  // a link that failed is taken for made, and nobody looks whether the blob is there
#define M_parent_named_instead 3  // the index names the file of the parent, which gets no second name

#include "steps.pml"
#include "files.pml"

// Two bits for each checkpoint: its marker, and its name of the blob. What a name leads to is durable: the parent is
// committed, and what is written instead is synced before its name is (commit.pml).
#define MARKER(k) (1 << (2 * (k)))
#define BLOB(k) (2 << (2 * (k)))
#define ALL(k) (MARKER(k) | BLOB(k))

bool has_other;  // a newer checkpoint that nobody here links from or deletes
byte failed;     // ranks whose save ended by an error of the storage

inline link_blob(k) {
  if
  :: MUTANT(parent_named_instead) -> SAY(k, write blobs, the file of the parent named)
  :: BUT(parent_named_instead) && HAS(fs.now, BLOB(0)) -> create(BLOB(k + 1)); is_there = true; SAY(k, write blobs, blob linked)
  :: BUT(parent_named_instead) && !HAS(fs.now, BLOB(0)) -> SAY(k, write blobs, there is nothing to link)
  :: BUT(parent_named_instead) && FAULT; SAY(k, write blobs, the link is refused)
  fi
}

inline write_instead(k) {
  if
  :: is_there || MUTANT(parent_named_instead)
  :: !is_there && MUTANT(failed_link_believed) -> SAY(k, write blobs, the link is believed)
  :: !is_there && BUT(failed_link_believed) && BUT(parent_named_instead) ->
     create(BLOB(k + 1)); SAY(k, write blobs, blob written and synced)
  fi;
  is_there = false
}

inline sync_blob(k) {
  if
  :: MUTANT(link_not_synced) -> SAY(k, sync blobs, directory not synced)
  :: BUT(link_not_synced) -> sync_names(BLOB(k + 1)); SAY(k, sync blobs, directory synced)
  :: FAULT; spoil_names(BLOB(k + 1)); failed = failed | (1 << k); SAY(k, sync blobs, directory sync fails)
  fi
}

#define HAS_FAILED(k) ((failed & (1 << (k))) != 0)

proctype saver(byte k) {
  bool is_there;
  atomic { link_blob(k) };
  atomic { write_instead(k) };
  atomic { sync_blob(k) };
  if
  :: HAS_FAILED(k) -> goto done
  :: !HAS_FAILED(k)
  fi;
  // Nobody but its own rank removes anything here.
  assert(HAS(fs.now, BLOB(k + 1)) || mutant != 0);
  atomic { create(MARKER(k + 1)); SAY(k, publish, published) };
  atomic { sync_names(MARKER(k + 1)); SAY(k, publish, directory synced) };
done:
  skip
}

// Of the parent; once something newer is durable.
proctype deleter() {
  byte newer = 1;
end:
  if
  :: has_other
  :: HAS_ALL(fs.surely, ALL(1))
  fi;
  atomic { remove(MARKER(0)); SAY_AS(deleter 0, delete 2, marker removed) };
  atomic { sync_names(MARKER(0)); SAY_AS(deleter 0, delete 2, directory synced) };
  atomic { remove(BLOB(0)); SAY_AS(deleter 0, delete 3, files removed) };
  atomic { sync_names(ALL(0)); SAY_AS(deleter 0, delete 3, directory synced) }
}

// The file that a checkpoint needs.
#define NEEDED(k) ((MUTANT(parent_named_instead)) -> BLOB(0) : BLOB(k))

inline look() {
  k = 0;
  do
  :: k < N ->
     if
     :: HAS(fs.now, MARKER(k)) && !HAS(fs.now, NEEDED(k)) ->
        SAY_AS(reader, -, sees a marker without its files); assert(false)
     :: HAS(fs.maybe, MARKER(k)) && HAS(fs.now, NEEDED(k)) && !HAS(fs.surely, NEEDED(k)) && k > 0 ->
        SAY_AS(crash, -, keeps marker loses name of blob); assert(false)
     :: else
     fi;
     k++
  :: else -> break
  od;
  k = 0
}

proctype fate() {
  byte k;
end:
  do
  :: atomic { has_crashes -> look() }
  od
}

init {
  atomic {
    byte k;
    read_environment();
    create(ALL(0));
    sync_names(255);
    if
    :: has_other = true
    :: has_other = false
    fi;
    run fate();
    for (k : 0 .. (N - 2)) { run saver(k) }
    run deleter();
    k = 0
  }
}
