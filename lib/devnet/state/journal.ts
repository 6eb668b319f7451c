import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { crc32 } from 'node:zlib'
import { dataPath } from '#lib/config/data-directory.ts'
import type { LedgerHead } from './record.ts'

/** The position of the body of a ledger's record. */
export interface Place {
  readonly segment: number
  readonly offset: number
}

/**
 * The closed ledgers, one record each, appended with one write. A record is
 * `head length · body length · CRC-32 of the head (u32 each, big endian) · head (JSON) · body`; segments are files
 * named by their first ledger.
 */
export interface Journal {
  append(head: LedgerHead, body: Buffer): Place
  read(place: Place, offset: number, length: number): Buffer
  /** Bytes of the segment that is being written. */
  segmentBytes(): number
  /** Ends the current segment, which is on the disk then: the next record, `sequence`, begins another. */
  roll(sequence: number): void
  /** Ledgers from which on the segments begin, oldest first. */
  segments(): number[]
  /** Deletes a whole segment. */
  drop(segment: number): void
  close(): void
}

const PREFIX_BYTES = 12

/**
 * Opens the journal under `directory` and hands every whole record to `replay`, oldest first. Half a record at the end
 * is cut away: a crash left it, before any client saw that ledger.
 * @throws if a segment other than the last is damaged
 */
export function openJournal(directory: string, replay: (head: LedgerHead, place: Place) => void): Journal {
  const files = new Map<number, number>()
  const pathOf = (segment: number) => dataPath(directory, `ledgers-${String(segment).padStart(10, '0')}.journal`)
  const names = readdirSync(directory).flatMap((name) => /^ledgers-(\d{10})\.journal$/.exec(name)?.[1] ?? [])
  const found = names.map(Number).toSorted((left, right) => left - right)
  let current = found.at(-1) ?? 1
  let size = 0

  for (const segment of found) {
    const file = openSync(pathOf(segment), 'r+')
    files.set(segment, file)
    const length = statSync(pathOf(segment)).size
    size = replaySegment(file, length, (head, offset) => replay(head, { segment, offset }))
    if (size === length) continue
    if (segment !== current) throw new Error(`${pathOf(segment)} is damaged`)
    ftruncateSync(file, size)
  }
  const openCurrent = (): number => {
    const file = files.get(current) ?? openSync(pathOf(current), 'w+')
    files.set(current, file)
    return file
  }

  return {
    append(head, body) {
      const text = Buffer.from(JSON.stringify(head))
      const prefix = Buffer.alloc(PREFIX_BYTES)
      prefix.writeUInt32BE(text.length, 0)
      prefix.writeUInt32BE(body.length, 4)
      prefix.writeUInt32BE(crc32(text), 8)
      const record = Buffer.concat([prefix, text, body])
      const place = { segment: current, offset: size + PREFIX_BYTES + text.length }
      const written = writeSync(openCurrent(), record, 0, record.length, size)
      if (written !== record.length) throw new Error(`${pathOf(current)} could not be written`)
      size += record.length
      return place
    },
    read({ segment, offset: start }, offset, length) {
      const file = files.get(segment)
      if (file === undefined) throw new Error(`${pathOf(segment)} is gone`)
      const buffer = Buffer.allocUnsafe(length)
      const got = readSync(file, buffer, 0, length, start + offset)
      if (got !== length) throw new Error(`${pathOf(segment)} ends too early`)
      return buffer
    },
    segmentBytes: () => size,
    roll(sequence) {
      const file = openCurrent()
      // A write that failed may have left a part of its record.
      ftruncateSync(file, size)
      fsyncSync(file)
      current = sequence
      size = 0
    },
    segments: () => Array.from(files.keys()),
    drop(segment) {
      const file = files.get(segment)
      if (file !== undefined) closeSync(file)
      files.delete(segment)
      rmSync(pathOf(segment), { force: true })
    },
    close() {
      for (const file of files.values()) closeSync(file)
      files.clear()
    },
  }
}

/** Reads the heads of a segment and returns where its last whole record ends. */
function replaySegment(file: number, length: number, replay: (head: LedgerHead, body: number) => void): number {
  const prefix = Buffer.alloc(PREFIX_BYTES)
  let position = 0
  while (position + PREFIX_BYTES <= length) {
    readSync(file, prefix, 0, PREFIX_BYTES, position)
    const headLength = prefix.readUInt32BE(0)
    const body = position + PREFIX_BYTES + headLength
    const end = body + prefix.readUInt32BE(4)
    if (end > length) return position
    const text = Buffer.alloc(headLength)
    readSync(file, text, 0, headLength, position + PREFIX_BYTES)
    if (crc32(text) !== prefix.readUInt32BE(8)) return position
    replay(JSON.parse(text.toString()), body)
    position = end
  }
  return position
}

/** A journal without files. Bodies stay in memory until their segment is dropped. */
export function memoryJournal(): Journal {
  const segments = new Map<number, Buffer[]>()
  let current = 1
  let size = 0
  return {
    append(_head, body) {
      const bodies = segments.get(current) ?? []
      segments.set(current, bodies)
      size += body.length
      return { segment: current, offset: bodies.push(body) - 1 }
    },
    read({ segment, offset: index }, offset, length) {
      const body = segments.get(segment)?.[index]
      if (!body) throw new Error('no such record')
      return body.subarray(offset, offset + length)
    },
    segmentBytes: () => size,
    roll(sequence) {
      current = sequence
      size = 0
    },
    segments: () => Array.from(segments.keys()),
    drop: (segment) => void segments.delete(segment),
    close: () => segments.clear(),
  }
}
