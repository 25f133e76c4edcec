# Marker, index and blob of format version 1 for Kaitai Struct (https://kaitai.io). Not normative: container.md counts. A viewer shows
# any one file with it; digests, FlatBuffers and what files say of each other are not checked here.
meta:
  id: sealpoint
  title: Sealpoint checkpoint, one file
  license: Apache-2.0
  endian: le
seq:
  - id: header
    type: header
  - id: marker
    type: marker
    if: header.kind == file_kind::marker
instances:
  flat_buffer:
    pos: header.length
    size: _io.size - header.length
    if: header.kind == file_kind::index
  trailer:
    pos: _io.size - 256
    type: trailer
    if: header.kind == file_kind::blob
  group_list:
    pos: trailer.table_offset
    size: 16
    repeat: expr
    repeat-expr: (trailer.record_count + 63) / 64
    if: header.kind == file_kind::blob
  records:
    pos: trailer.records_offset
    type: record
    repeat: expr
    repeat-expr: trailer.record_count
    if: header.kind == file_kind::blob
  manifest:
    pos: trailer.manifest_offset
    size: trailer.manifest_length
    if: header.kind == file_kind::blob
types:
  header:
    seq:
      - id: magic
        contents: [0x89, 0x53, 0x50, 0x54, 0x0d, 0x0a, 0x1a, 0x0a]
      - id: kind
        type: u4
        enum: file_kind
      - id: version
        type: u4
      - id: length
        type: u4
      - id: reserved
        size: 4
      - id: compat
        type: u8
      - id: incompat
        type: u8
      - id: digest
        size: 16
      - id: file_id
        size: 16
      - id: attempt
        size: 16
      - id: step
        type: u8
      - id: tail_reserved
        size: 32
  marker:
    seq:
      - id: kind
        type: u4
        enum: marker_kind
      - id: reserved
        size: 4
      - id: parent
        size: 16
      - id: sequence
        type: u8
      - id: index_length
        type: u8
      - id: index_digest
        size: 16
      - id: blob_count
        type: u8
      - id: total_bytes
        type: u8
      - id: tail_reserved
        size: 56
      - id: extension
        size: 256
  trailer:
    seq:
      - id: magic
        contents: [0x89, 0x53, 0x50, 0x42, 0x0d, 0x0a, 0x1a, 0x0a]
      - id: length
        type: u4
      - id: record_size
        type: u4
      - id: blob_id
        size: 16
      - id: file_size
        type: u8
      - id: chunks_end
        type: u8
      - id: table_offset
        type: u8
      - id: record_count
        type: u4
      - id: shard_count
        type: u4
      - id: records_offset
        type: u8
      - id: manifest_offset
        type: u8
      - id: manifest_length
        type: u8
      - id: raw_bytes
        type: u8
      - id: group_list_digest
        size: 16
      - id: manifest_digest
        size: 16
      - id: header_digest
        size: 16
      - id: digest_algorithm
        type: u2
      - id: reserved
        size: 78
      - id: extension
        size: 16
      - id: digest
        size: 16
  record:
    seq:
      - id: offset
        type: u8
      - id: stored_length
        type: u4
      - id: raw_length
        type: u4
      - id: shard
        type: u4
      - id: chunk
        type: u4
      - id: codec
        type: u2
        enum: codec
      - id: reserved
        type: u2
      - id: source_blob
        type: u4
      - id: raw_digest
        size: 16
      - id: stored_digest
        size: 16
    instances:
      payload:
        io: _root._io
        pos: offset
        size: stored_length
enums:
  file_kind:
    1: blob
    2: index
    3: marker
    4: parity
  marker_kind:
    1: commit
    2: void
  codec:
    0: none
    1: zstd
    2: bytesplit_zstd
    4: changes
