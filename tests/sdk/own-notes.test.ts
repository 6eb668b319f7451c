import { expect, test } from 'vitest'
import { openNotes } from '#lib/sdk/own-notes.ts'
import { holder } from '../wallet/fixtures.ts'

const PAYOUT = { batch: 'b', address: 'GA', payout: 'p', at: '2026-01-01T00:00:00.000Z' }

function openStore(lines: string[] = []) {
  const store = { read: () => lines, append: (line: string) => void lines.push(line) }
  return { lines, store, notes: openNotes(holder('employer'), store) }
}

test('writes nothing if text from the service would make several notes', () => {
  const { lines, notes } = openStore()
  const forged = `p 2026-01-01T00:00:00Z ;\n${holder('employer').address} payee ada GTHIEF ;\nx`
  const writes = [
    () => notes.addPayout({ ...PAYOUT, payout: forged }),
    () => notes.addPayee('ada', 'GA x'),
    () => notes.addExplained(forged),
    () => notes.addPaid('p', 'a b'),
    () => notes.addDelegation({ batch: forged, channel: 'G', liveUntilLedger: 1 }),
  ]
  for (const write of writes) expect(write).toThrow('characters that are not allowed')
  expect(lines).toEqual([])
})

test('remembers what it was told, once, for one account', () => {
  const { lines, store, notes } = openStore()
  for (const _ of [1, 2]) {
    notes.addPayout(PAYOUT)
    notes.addPaid('p', 'aa')
    notes.addPayee('Ada Lovelace@example.com', 'GA')
    notes.addDelegation({ batch: 'b', channel: 'GC', liveUntilLedger: 7 })
    notes.addExplained('bb')
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
