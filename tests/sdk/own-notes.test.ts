import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { notesFile } from '#lib/cli/client/notes-file.ts'
import { openNotes, storedNotes } from '#lib/sdk/own-notes.ts'
import { holder } from '../wallet/fixtures.ts'

const PAYOUT = { batch: 'b', address: 'GA', payout: 'p', at: '2026-01-01T00:00:00.000Z' }

function openStore(lines: string[] = []) {
  const store = { read: () => lines, append: (added: readonly string[]) => void lines.push(...added) }
  return { lines, store, notes: openNotes(holder('employer'), store) }
}

test('writes nothing if text from the service would make several notes', () => {
  const { lines, notes } = openStore()
  const forged = `p 2026-01-01T00:00:00Z ;\n${holder('employer').address} payee ada GTHIEF ;\nx`
  const writes = [
    () => notes.addPayouts([PAYOUT, { ...PAYOUT, payout: forged }]),
    () => notes.addPayee('ada', 'GA x'),
    () => notes.addExplained([forged]),
    () => notes.addPaid(new Map([['p', 'a b']])),
    () => notes.addDelegation({ batch: forged, channel: 'G', liveUntilLedger: 1 }),
  ]
  for (const write of writes) expect(write).toThrow('characters that are not allowed')
  expect(lines).toEqual([])
})

test('remembers what it was told, once, for one account', () => {
  const { lines, store, notes } = openStore()
  for (const _ of [1, 2]) {
    notes.addPayouts([PAYOUT])
    notes.addPaid(new Map([['p', 'aa']]))
    notes.addPayee('Ada Lovelace@example.com', 'GA')
    notes.addDelegation({ batch: 'b', channel: 'GC', liveUntilLedger: 7 })
    notes.addExplained(['bb'])
  }
  expect(lines).toHaveLength(5)
  expect(notes.payouts()).toEqual([PAYOUT])
  expect(notes.paid()).toEqual(new Map([['p', 'aa']]))
  expect(notes.addressOf('ada lovelace@EXAMPLE.com')).toBe('GA')
  expect(notes.delegations()).toEqual([{ batch: 'b', channel: 'GC', liveUntilLedger: 7 }])
  expect(notes.explained()).toEqual(['bb'])
  expect(openNotes(holder('another employer'), store).payouts()).toEqual([])
})

test('ignores lines that a crash has cut short, and takes the last address of a payee', () => {
  const { lines, notes } = openStore()
  notes.addPayee('ada', 'GA')
  notes.addPayee('ada', 'GB')
  notes.addPayee('ada', 'GA')
  expect(notes.addressOf('ada')).toBe('GA')
  lines.push(`${holder('employer').address} payee ada GTH`)
  expect(notes.addressOf('ada')).toBe('GA')
})

test('reads what another program has added meanwhile, to a file or to an array', () => {
  const folder = mkdtempSync(join(tmpdir(), 'notes-'))
  try {
    const [one, other] = [notesFile(join(folder, 'notes')), notesFile(join(folder, 'notes'))]
    expect(openNotes(holder('employer'), one).payouts()).toEqual([])
    openNotes(holder('employer'), other).addPayouts([PAYOUT])
    expect(openNotes(holder('employer'), one).payouts()).toEqual([PAYOUT])
    // Unchanged lines are the same array, which is parsed once.
    expect(one.read()).toBe(one.read())
  } finally {
    rmSync(folder, { recursive: true })
  }
  const { store, notes } = openStore()
  expect(notes.paid()).toEqual(new Map())
  openNotes(holder('employer'), store).addPaid(new Map([['p', 'aa']]))
  expect(notes.paid()).toEqual(new Map([['p', 'aa']]))
})

test('parses and writes the notes of a batch once, not once per payout', () => {
  const counts = { written: 0, parsed: 0 }
  const lines: string[] = []
  const store = {
    read: () => lines,
    append: (added: readonly string[]) => {
      counts.written += 1
      for (const line of added) {
        // Each parse splits each line once.
        const counted = Object.assign(new String(line), {
          split: (separator: string) => {
            counts.parsed += 1
            return line.split(separator)
          },
        })
        lines.push(counted as unknown as string)
      }
    },
  }
  const notes = openNotes(holder('employer'), store)
  const payouts = Array.from({ length: 1_000 }, (_, index) => ({ ...PAYOUT, payout: `p${index}` }))
  notes.addPayouts(payouts)
  for (const { payout } of payouts) expect(notes.paid().has(payout)).toBe(false)
  expect(notes.payouts()).toHaveLength(1_000)
  expect(counts).toEqual({ written: 1, parsed: 1_000 })
})

/** The storage of a browser: each process has a copy, and learns of others' changes a moment later. */
function openTabs() {
  const disk = new Map<string, string>()
  const open = () => {
    const copy = new Map(disk)
    const storage = {
      get length() {
        return copy.size
      },
      key: (index: number) => [...copy.keys()][index] ?? null,
      getItem: (key: string) => copy.get(key) ?? null,
      setItem: (key: string, value: string) => {
        copy.set(key, value)
        disk.set(key, value)
      },
    }
    const learn = () => {
      for (const [key, value] of disk) copy.set(key, value)
    }
    return { notes: openNotes(holder('employer'), storedNotes(storage)), learn }
  }
  return { open }
}

test('keeps notes in the storage of a browser, also those that two tabs add at once', () => {
  const { open } = openTabs()
  const [tab, other] = [open(), open()]
  tab.notes.addPayouts([PAYOUT])
  other.notes.addPayouts([{ ...PAYOUT, payout: 'q' }])
  tab.notes.addPayee('ada', 'GA')
  tab.notes.addPayee('ada', 'GB')
  for (const { learn } of [tab, other]) learn()
  for (const { notes } of [tab, other, open()]) {
    expect(
      notes
        .payouts()
        .map(({ payout }) => payout)
        .toSorted(),
    ).toEqual(['p', 'q'])
    expect(notes.addressOf('ada')).toBe('GB')
  }
})
