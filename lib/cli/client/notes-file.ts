import { closeSync, fsyncSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import type { NoteStore } from '#lib/sdk/own-notes.ts'

/** Keeps an employer's notes in the file at `path`, which only its owner can read. It is created with the first note. */
export function notesFile(path: string): NoteStore {
  let known = { size: 0, lines: [] as readonly string[] }
  return {
    read: () => {
      // The file only grows.
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
      if (size !== known.size) known = { size, lines: readFileSync(path, 'utf8').split('\n').filter(Boolean) }
      return known.lines
    },
    append: (lines) => append(path, lines),
  }
}

/**
 * Begins with a line feed: a crash may have left the last line incomplete, and the new one must not continue it. Incomplete
 * lines are ignored.
 */
function append(path: string, lines: readonly string[]): void {
  const file = openSync(path, 'a', 0o600)
  try {
    writeFileSync(file, `\n${lines.join('\n')}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
