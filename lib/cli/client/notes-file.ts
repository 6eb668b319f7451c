import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { NoteStore } from '#lib/sdk/own-notes.ts'

/** Keeps an employer's notes in the file at `path`, which only its owner can read. It is created with the first note. */
export function notesFile(path: string): NoteStore {
  return { read: () => readLines(path), append: (line) => append(path, line) }
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/**
 * Begins with a line feed: a crash may have left the last line incomplete, and the new one must not continue it. Incomplete
 * lines are ignored.
 */
function append(path: string, line: string): void {
  const file = openSync(path, 'a', 0o600)
  try {
    writeSync(file, `\n${line}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
