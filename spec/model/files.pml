// SPDX-License-Identifier: Apache-2.0
// The file system of the models: what is there now, and what a crash leaves. README.md has the axioms.
//
// A file is a bit; a state of the file system is a handful of masks of such bits.

#ifndef SET
#define SET byte
#endif

typedef Files {
  SET now;     // names that are there
  SET surely;  // names that are there after a crash
  SET maybe;   // names that may be there after a crash; a superset of `surely`
  SET whole;   // content as it should be; else none or part, which no digest lets pass
  SET synced;  // content that survives a crash
  SET spoilt;  // a sync failed: the pages are marked clean, no later sync makes them durable
  SET stale;   // names whose directory sync failed: the same
}
Files fs;

#define HAS(set, file) (((set) & (file)) != 0)
#define HAS_ALL(set, files) (((set) & (files)) == (files))

inline create(file) {
  fs.now = fs.now | (file);
  fs.maybe = fs.maybe | (file);
}

inline sync_content(file) { fs.synced = fs.synced | ((file) & fs.whole & ~fs.spoilt); }

// The names among `names` as they are now become durable, new ones and removed ones.
inline sync_names(names) {
  fs.surely = (fs.surely & ~((names) & ~fs.stale)) | (fs.now & (names) & ~fs.stale);
  fs.maybe = (fs.maybe & ~((names) & ~fs.stale)) | (fs.now & (names) & ~fs.stale);
}

inline spoil_names(names) { fs.stale = fs.stale | ((names) & (fs.now ^ fs.surely)); }

inline remove(file) {
  fs.now = fs.now & ~(file);
  fs.surely = fs.surely & ~(file);
}
