import { describe, expect, test } from 'vitest'
import { readAudit } from '#lib/disclosure/audit.ts'
import { presentAudit } from '#lib/disclosure/audit-report.ts'
import { type Balances, compareBooks, type Problem } from '#lib/disclosure/books.ts'
import type { HistoryEvent } from '#lib/disclosure/history.ts'
import { readCheckedStatement } from '#lib/disclosure/statement.ts'
import { presentStatement } from '#lib/disclosure/statement-report.ts'
import { addOpenings, commit, NOTHING, type Opening } from '#lib/wallet/commitment.ts'
import { encryptTransfer, encryptWithdrawal } from '#lib/wallet/encryption.ts'
import { encodePoint } from '#lib/wallet/grumpkin.ts'
import { drawSalt, type Holder } from '#lib/wallet/keys.ts'
import { auditor } from '../wallet/fixtures.ts'
import { FakeLedger } from './fake-ledger.ts'

const { key, secret } = auditor('auditor')
const period = { from: '2026-01-01T00:00:00.000Z', to: '2026-07-01T00:00:00.000Z' }

/** A ledger whose accounts hold what its events say. */
class HonestLedger extends FakeLedger {
  readonly balances = new Map<string, { spendable: Opening; receiving: Opening }>()

  register(name: string): Holder {
    const account = this.enrol(name)
    this.emit('register', [account.address], {})
    this.keep(account.address, { spendable: NOTHING, receiving: NOTHING })
    return account
  }

  deposit(to: Holder, amount: bigint) {
    this.receive(to, { value: amount, blinding: 0n })
    return this.emit('deposit', [to.address, to.address], { amount })
  }

  merge({ address }: Holder) {
    const { spendable, receiving } = this.balanceOf(address)
    this.keep(address, { spendable: addOpenings(spendable, receiving), receiving: NOTHING })
    return this.emit('merge', [address], {})
  }

  transfer(from: Holder, to: Holder, amount: bigint) {
    const { payload, next, transferred } = this.encrypt(from, to, amount, this.balanceOf(from.address).spendable)
    this.keep(from.address, { ...this.balanceOf(from.address), spendable: next })
    this.receive(to, transferred)
    return this.emit('transfer', [from.address, to.address], payload)
  }

  /** @param shown the amount in the event, which an honest one has */
  withdraw(from: Holder, amount: bigint, shown = amount) {
    const opening = this.balanceOf(from.address).spendable
    const salt = drawSalt(this.random)
    const { payload, next } = encryptWithdrawal({ keys: from.keys, opening, amount, auditorSender: key, salt })
    this.keep(from.address, { ...this.balanceOf(from.address), spendable: next })
    return this.emit('withdraw', [from.address, from.address], { ...payload, amount: shown })
  }

  /** The event of a payment that never was: its keys need not be those of `from`. */
  invent(from: Holder, to: Holder, amount: bigint) {
    return new FakeLedger().emit('transfer', [from.address, to.address], this.encrypt(from, to, amount).payload)
  }

  private encrypt({ keys }: Holder, to: Holder, amount: bigint, opening = { value: amount, blinding: 3n }) {
    const viewingKey = to.keys.viewingKey
    const auditors = { auditorSender: key, auditorRecipient: key }
    return encryptTransfer({ keys, opening, amount, viewingKey, salt: drawSalt(this.random), ...auditors })
  }

  private receive({ address }: Holder, received: Opening) {
    const { spendable, receiving } = this.balanceOf(address)
    this.keep(address, { spendable, receiving: addOpenings(receiving, received) })
  }

  private balanceOf = (address: string) => this.balances.get(address) ?? { spendable: NOTHING, receiving: NOTHING }

  private keep(address: string, { spendable, receiving }: { spendable: Opening; receiving: Opening }) {
    this.balances.set(address, { spendable, receiving })
    const account = this.accounts.get(address)
    const points = { spendable: encodePoint(commit(spendable)), receiving: encodePoint(commit(receiving)) }
    if (account) this.accounts.set(address, { ...account, ...points })
  }
}

/** Two payments to a contractor, which merges, pays, and withdraws. The archive has the events below ledger 1008. */
function openCase(shown = 10n) {
  const ledger = new HonestLedger()
  const [employer, contractor, stranger] = [
    ledger.register('employer'),
    ledger.register('contractor'),
    ledger.register('stranger'),
  ]
  ledger.deposit(employer, 1_000n)
  ledger.merge(employer)
  ledger.transfer(employer, contractor, 40n)
  ledger.transfer(employer, contractor, 20n)
  ledger.merge(contractor)
  ledger.transfer(contractor, stranger, 5n)
  ledger.transfer(employer, contractor, 7n)
  ledger.withdraw(contractor, 10n, shown)
  return { ledger, employer, contractor, stranger }
}

const ARCHIVE = 'https://lying.example'
const archived = (events: readonly HistoryEvent[]) =>
  events.map((event) => (event.ledger < 1_008 ? { ...event, source: ARCHIVE } : event))

/** An event in the place of another one, or before it. */
const placed = (event: HistoryEvent, { id, ledger, closedAt, transaction }: HistoryEvent): HistoryEvent => ({
  ...event,
  id: `${id}-0`,
  ledger,
  closedAt,
  transaction,
})

type Case = ReturnType<typeof openCase>

const compare = ({ ledger }: Case, reading: Balances & { problems: Problem[] }, account: string) =>
  [
    ...reading.problems,
    ...compareBooks(reading, { accounts: ledger.accounts, delegations: [], through: 1_010 }),
  ].filter((problem) => problem.account === account)

/** What the contractor's statement says of these events. */
function read(given: Case, events: readonly HistoryEvent[]) {
  const { ledger, contractor } = given
  const viewingKeys = new Map([...ledger.accounts].map(([name, { viewingKey }]) => [name, viewingKey]))
  const statement = readCheckedStatement({ ...contractor, events: archived(events), viewingKeys, period })
  return { ...statement, problems: compare(given, statement, contractor.address) }
}

const at = <Item>(items: readonly Item[], index: number): Item => {
  const item = items.at(index)
  if (item === undefined) throw new Error('nothing there')
  return item
}

test('the balance of each line follows from the one before, and the last is that of the ledger', () => {
  const given = openCase()
  const { lines, problems } = read(given, given.ledger.events)
  expect(problems).toEqual([])
  expect(lines.map(({ direction, amount, balance }) => [direction, amount, balance])).toEqual([
    ['received', 40n, 40n],
    ['received', 20n, 60n],
    ['sent', 5n, 55n],
    ['received', 7n, 62n],
    ['withdrawn', 10n, 52n],
  ])
})

/** The problem of an event that the token cannot have emitted. */
const NOT_EMITTED = (ledger: number, source: string) =>
  new RegExp(
    `^an event of ledger ${ledger}, read from ${source.replaceAll('.', '\\.')}, is not one that the token emits$`,
  )

/** Lies of an archive about its ledgers, 1000 to 1007, or of an RPC about the later ones. */
const LIES: [string, (given: Case) => HistoryEvent[], RegExp][] = [
  [
    'invents an income before a checkpoint',
    ({ ledger, stranger, contractor }) => {
      const [merge, invented] = [at(ledger.events, 7), ledger.invent(stranger, contractor, 7_777n)]
      return ledger.events.flatMap((event) => (event === merge ? [placed(invented, merge), event] : [event]))
    },
    /^the events from ledger 1001 to ledger 1008, read from https:\/\/lying\.example and the RPC, contradict each other: they add up to 0\.0007837, and the account had 0\.0000060$/,
  ],
  [
    'withholds an income before a checkpoint',
    ({ ledger }) => ledger.events.filter((_, index) => index !== 5),
    /ledger 1001 to ledger 1008.* add up to 0\.0000020, and the account had 0\.0000060$/,
  ],
  [
    'invents an income after the last merge',
    ({ ledger, stranger, contractor }) => {
      const last = at(ledger.events, -1)
      return [...ledger.events, placed(ledger.invent(stranger, contractor, 7_777n), last)]
    },
    /^the events from ledger 1007 to ledger 1010, read from .*lying\.example and the RPC, do not add up to the ledger’s receiving balance$/,
  ],
  [
    'withholds the last events',
    ({ ledger }) => ledger.events.slice(0, -1),
    /^the events from ledger 1008 to ledger 1010, read from the RPC, do not add up to the ledger’s spendable balance$/,
  ],
  [
    'changes the amount of a withdrawal',
    () => openCase(9n).ledger.events,
    /^the events from ledger 1008 to ledger 1010, read from the RPC, contradict each other: they add up to 0\.0000055, and the account had 0\.0000054$/,
  ],
  [
    'has a payment that the token cannot have emitted',
    ({ ledger, stranger, contractor }) => {
      const last = at(ledger.events, -1)
      const { topics } = ledger.invent(stranger, contractor, 1n)
      return [...ledger.events, placed({ ...at(ledger.events, 3), topics }, last)]
    },
    NOT_EMITTED(1_010, 'the RPC'),
  ],
  [
    'invents an income before the registration',
    ({ ledger, stranger, contractor }) => {
      const [first, ...rest] = ledger.events
      const invented = placed(ledger.invent(stranger, contractor, 7_777n), at(rest, 0))
      return first ? [first, invented, ...rest] : []
    },
    NOT_EMITTED(1_001, ARCHIVE),
  ],
  [
    'invents an income, a merge and another registration',
    ({ ledger, stranger, contractor }) => {
      const [register, next] = [at(ledger.events, 1), at(ledger.events, 2)]
      const invented = [ledger.invent(stranger, contractor, 7_777n), { ...at(ledger.events, 7) }, register]
      return ledger.events.flatMap((event) =>
        event === next ? [...invented.map((one) => placed(one, register)), event] : [event],
      )
    },
    NOT_EMITTED(1_001, ARCHIVE),
  ],
  [
    'invents a withdrawal whose balance the account cannot read',
    ({ ledger, stranger, contractor }) => {
      const merge = at(ledger.events, 7)
      const drawn = { amount: 7_777n, b_tilde: new Uint8Array(32), sigma: new Uint8Array(32).fill(1) }
      const withdrawal = new FakeLedger().emit('withdraw', [contractor.address, contractor.address], drawn)
      return ledger.events.flatMap((event) =>
        event === merge
          ? [placed(ledger.invent(stranger, contractor, 7_777n), merge), event, placed(withdrawal, merge)]
          : [event],
      )
    },
    NOT_EMITTED(1_007, ARCHIVE),
  ],
  [
    'has an income that the account cannot read',
    ({ ledger, employer, contractor, stranger }) => {
      const last = at(ledger.events, -1)
      const { data } = ledger.invent(employer, stranger, 1n)
      return [...ledger.events, placed({ ...ledger.invent(employer, contractor, 1n), data }, last)]
    },
    NOT_EMITTED(1_010, 'the RPC'),
  ],
]

test.each(LIES)('a statement names ledgers and source of a source that %s', (_, lie, problem) => {
  const given = openCase()
  const statement = read(given, lie(given))
  expect(statement.problems[0]).toMatchObject({ problem: expect.stringMatching(problem), isContradiction: true })
  const { contractor } = given
  const report = presentStatement({ ...contractor, period, problems: statement.problems }, statement.lines, () => '')
  expect(report.notes[0]).toMatch(/^(the|an) .*\.$/)
})

test('a statement says which balances were not compared, if the amount before one of them cannot be read', () => {
  const { ledger, contractor, stranger } = openCase()
  const viewingKeys = new Map([...ledger.accounts].map(([name, { viewingKey }]) => [name, viewingKey]))
  viewingKeys.delete(stranger.address)
  const { problems } = readCheckedStatement({ ...contractor, events: ledger.events, viewingKeys, period })
  const problem =
    'from ledger 1008 to ledger 1008, 1 balance could not be compared with the events before: an amount cannot be read'
  expect(problems).toEqual([{ account: contractor.address, problem, isContradiction: false }])
})

test('a history without one event is said not to have been compared', () => {
  const { ledger, contractor } = openCase()
  const { accounts } = ledger
  const nothing = { accounts: new Map(), delegations: [] }
  expect(compareBooks(nothing, { accounts, delegations: [], through: 1_010 }, contractor.address)).toEqual([
    {
      account: contractor.address,
      problem: 'no event of the account was found through ledger 1010: nothing was compared',
      isContradiction: false,
    },
  ])
})

test('an audit of one account shows what concerns all of them', () => {
  const problem = { account: 'all', problem: 'the RPC ends with ledger 7', isContradiction: true }
  const { notes } = presentAudit([], { account: openCase().contractor.address, period, problems: [problem] })
  expect(notes).toEqual(['all: the RPC ends with ledger 7.'])
})

test.each([
  ['invents', 7_777n, 0],
  ['withholds', undefined, 5],
] as const)('an audit names ledgers and source of an archive that %s a payment', (_, amount, index) => {
  const given = openCase()
  const { ledger, stranger, contractor } = given
  const merge = at(ledger.events, 7)
  const events =
    amount === undefined
      ? ledger.events.filter((event) => event !== ledger.events[index])
      : ledger.events.flatMap((event) =>
          event === merge ? [placed(ledger.invent(stranger, contractor, amount), merge), event] : [event],
        )
  const audit = readAudit(archived(events), [secret])
  expect(compare(given, audit, contractor.address)).toMatchObject([
    {
      problem: expect.stringMatching(/from ledger 1001 to ledger 1008, read from .*contradict/),
      isContradiction: true,
    },
  ])
  expect(compare(given, readAudit(ledger.events, [secret]), contractor.address)).toEqual([])
})

describe('a history that begins after the registration', () => {
  test('is followed from its first checkpoint, and compared with the ledger', () => {
    const given = openCase()
    // Since the merge of 60, the balances are known.
    const { problems, lines } = read(given, given.ledger.events.slice(7))
    expect(problems).toEqual([])
    expect(lines.map(({ balance }) => balance)).toEqual([55n, 62n, 52n])
  })

  test('contradicts itself if more came in than the account had', () => {
    const given = openCase()
    const { ledger, stranger, contractor } = given
    const merge = at(ledger.events, 7)
    const events = [placed(ledger.invent(stranger, contractor, 61n), merge), ...ledger.events.slice(7)]
    expect(read(given, events).problems).toMatchObject([
      { problem: expect.stringMatching(/add up to at least 0\.0000061, and the account had 0\.0000060$/) },
    ])
  })

  test('says what was not compared', () => {
    const given = openCase()
    expect(read(given, given.ledger.events.slice(9, 10)).problems).toMatchObject([
      { problem: 'the spendable balance is unknown, and was not compared with the ledger’s', isContradiction: false },
      { problem: 'the receiving balance is unknown, and was not compared with the ledger’s', isContradiction: false },
    ])
  })
})

test('a payment of an account to itself is one line, in no total, and changes no balance', () => {
  const given = openCase()
  const { ledger, contractor } = given
  ledger.transfer(contractor, contractor, 30n)
  const { lines, problems } = read(given, ledger.events)
  expect(problems).toEqual([])
  expect(lines.at(-1)).toMatchObject({ direction: 'to itself', amount: 30n, balance: 52n })
  const report = presentStatement({ ...contractor, period }, lines, () => undefined)
  const [received, sent, total, other] = report.rows.at(-1)?.cells.slice(4) ?? []
  expect([received, sent, total, other]).toEqual(['', '', '0.0000062', '0.0000030'])
  expect(report.notes.at(-1)).toMatch(/returns through other accounts/)
  const audit = readAudit(ledger.events, [secret])
  expect(audit.lines.at(-1)).toMatchObject({ operation: 'transfer to itself', amount: 30n })
  expect(compare(given, audit, contractor.address)).toEqual([])
})
