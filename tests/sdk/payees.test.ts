import { Keypair } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { openNotes } from '#lib/sdk/own-notes.ts'
import { type AmountRow, matchPayees } from '#lib/sdk/payees.ts'
import { createPayrollClient } from '#lib/sdk/payroll-client.ts'
import { holder } from '../wallet/fixtures.ts'

const [ADA, BOB, THIEF] = ['ada', 'bob', 'thief'].map((name) => keyOf(name)) as [string, string, string]

function keyOf(name: string): string {
  return Keypair.fromRawEd25519Seed(new TextEncoder().encode(name.padEnd(32, '.'))).publicKey()
}

/** A client of a service whose database says this about contractors. */
const clientOf = (contractors: { id: string; email?: string; name?: string; address?: string }[]) =>
  createPayrollClient({
    baseUrl: 'http://payroll.test/api',
    fetch: async () => Response.json({ contractors: contractors.map((one) => ({ name: one.id, ...one })) }),
  })

function openOwnNotes() {
  const lines: string[] = []
  return openNotes(holder('employer'), { read: () => lines, append: (added) => void lines.push(...added) })
}

const rowOf = (contractor: string, address?: string): AmountRow => ({ contractor, amount: 5n, address })
const HONEST = [
  { id: 'a', email: 'ada@example.com', address: ADA },
  { id: 'b', email: 'bob@example.com', address: BOB },
]

test('pays the address that the list names, even if a thief’s record claims it as email or id', async () => {
  for (const claim of [{ id: ADA }, { id: 'thief', email: ADA }]) {
    const client = clientOf([{ ...claim, address: THIEF }, ...HONEST])
    expect(await matchPayees(client, [rowOf(ADA)], openOwnNotes())).toEqual([
      { contractor: 'a', amount: 5n, address: ADA },
    ])
    const alone = clientOf([{ ...claim, address: THIEF }])
    await expect(matchPayees(alone, [rowOf(ADA)], openOwnNotes())).rejects.toMatchObject({ code: 'list-differs' })
  }
})

test('pays no contractor by id or email whose address only the API has, and names the addresses', async () => {
  const notes = openOwnNotes()
  const rows = [rowOf('Ada@example.com'), rowOf('b')]
  const matching = matchPayees(clientOf(HONEST), rows, notes)
  await expect(matching).rejects.toMatchObject({ code: 'payee-unverified', message: expect.stringContaining(ADA) })
  await expect(matching).rejects.toThrow(`${BOB} for b, called "b"`)
  // Refused payees are not noted.
  await expect(matchPayees(clientOf(HONEST), rows, notes)).rejects.toMatchObject({ code: 'payee-unverified' })
})

test('remembers an address that was confirmed, and refuses another one of the same payee', async () => {
  const notes = openOwnNotes()
  const shown: unknown[] = []
  const trust = (payees: readonly object[]) => shown.push(...payees) > 0
  const rows = [rowOf('ada@example.com')]
  const payees = [{ contractor: 'a', amount: 5n, address: ADA }]
  expect(await matchPayees(clientOf(HONEST), rows, notes, trust)).toEqual(payees)
  expect(shown).toEqual([{ named: 'ada@example.com', name: 'a', address: ADA }])
  expect(await matchPayees(clientOf(HONEST), [rowOf('ADA@example.com')], notes)).toEqual(payees)
  // Also an address that is known for another payee.
  for (const address of [THIEF, BOB]) {
    const robbed = clientOf([{ id: 'a', email: 'ada@example.com', address }])
    await expect(matchPayees(robbed, rows, notes, trust)).rejects.toMatchObject({
      code: 'list-differs',
      message: expect.stringMatching(new RegExp(`${address}.*${ADA}`)),
    })
  }
  expect(shown).toHaveLength(1)
})

test('takes the address of the list before that of the notes', async () => {
  const notes = openOwnNotes()
  notes.addPayee('ada@example.com', THIEF)
  const rows = [rowOf('ada@example.com', ADA)]
  expect(await matchPayees(clientOf(HONEST), rows, notes)).toMatchObject([{ address: ADA }])
  await expect(matchPayees(clientOf(HONEST), [rowOf(ADA, BOB)], notes)).rejects.toMatchObject({ code: 'list-differs' })
})

test('refuses contractors that are missing, without an address, ambiguous, or listed twice', async () => {
  const client = clientOf([...HONEST, { id: 'c' }, { id: 'd', email: 'Bob@example.com', address: THIEF }])
  const notes = openOwnNotes()
  for (const rows of [[rowOf('carol')], [rowOf('c')], [rowOf('bob@example.com')], [rowOf(ADA), rowOf('a', ADA)]]) {
    await expect(matchPayees(client, rows, notes)).rejects.toMatchObject({ code: 'list-differs' })
  }
})
