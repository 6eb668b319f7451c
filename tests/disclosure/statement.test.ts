import { describe, expect, test } from 'vitest'
import { readAudit } from '#lib/disclosure/audit.ts'
import { compareBooks } from '#lib/disclosure/books.ts'
import type { HistoryEvent } from '#lib/disclosure/history.ts'
import { openAsSender } from '#lib/disclosure/opening.ts'
import { readPayment } from '#lib/disclosure/payment.ts'
import { formatReport } from '#lib/disclosure/report-format.ts'
import { readStatement } from '#lib/disclosure/statement.ts'
import { presentStatement } from '#lib/disclosure/statement-report.ts'
import { commit } from '#lib/wallet/commitment.ts'
import { encryptDelegatedTransfer, encryptDelegation } from '#lib/wallet/delegation.ts'
import { encryptTransfer, type Payload } from '#lib/wallet/encryption.ts'
import { encodeField, encodePoint } from '#lib/wallet/grumpkin.ts'
import { deriveDelegationKey, drawSalt } from '#lib/wallet/keys.ts'
import { auditor, TOKEN } from '../wallet/fixtures.ts'
import { FakeLedger } from './fake-ledger.ts'

const period = { from: '2026-01-01T00:00:00.000Z', to: '2026-07-01T00:00:00.000Z' }
const AT = '2026-02-01T00:00:00Z'

/** An owner that delegates 100 to a channel, which pays 40 and then 25 of it. */
function openPayroll() {
  const ledger = new FakeLedger()
  const [owner, channel, payee] = [ledger.enrol('owner'), ledger.enrol('channel'), ledger.enrol('payee')]
  const { key } = auditor('auditor')
  const auditors = { auditorSender: key, auditorRecipient: key }
  const emit = (name: string, addresses: string[], payload: Payload): HistoryEvent => ({
    ...ledger.emit(name, addresses, payload, AT),
    payload,
  })
  ledger.emit('register', [owner.address], {}, AT)
  ledger.emit('register', [payee.address], {}, AT)
  ledger.emit('deposit', [owner.address, owner.address], { amount: 500n }, AT)
  ledger.emit('merge', [owner.address], {}, AT)
  const delegation = encryptDelegation({
    keys: owner.keys,
    opening: { value: 500n, blinding: 0n },
    amount: 100n,
    salt: drawSalt(ledger.random),
    spender: channel.address,
    spenderKey: channel.keys.spendingKey,
    allowanceSalt: 18n,
    ...auditors,
  })
  const delegationKey = deriveDelegationKey(owner.keys.vk, channel.address)
  const pay = (allowance: { value: bigint; blinding: bigint }, allowanceSalt: bigint, amount: bigint) => {
    const salt = drawSalt(ledger.random)
    const shared = { keys: channel.keys, delegationKey, viewingKey: payee.keys.viewingKey, ...auditors }
    const { payload, next } = encryptDelegatedTransfer({ ...shared, allowance, allowanceSalt, amount, salt })
    const event = emit('spender_transfer', [channel.address, owner.address, payee.address], payload)
    return { event, next, salt }
  }
  const set = emit('set_spender', [owner.address, channel.address], delegation.payload)
  const first = pay(delegation.allowance, 18n, 40n)
  const second = pay(first.next, first.salt, 25n)
  const revoked = emit('revoke_spender', [owner.address, channel.address], {
    a_tilde: second.event.payload?.a_tilde_new ?? new Uint8Array(),
    allowance_salt: encodeField(second.salt),
  })
  return {
    ledger,
    owner,
    channel,
    payee,
    delegation,
    rest: second.next,
    events: [set, first.event, second.event, revoked],
  }
}

const viewingKeysOf = ({ accounts }: FakeLedger) =>
  new Map([...accounts].map(([name, { viewingKey }]) => [name, viewingKey]))

describe('a statement', () => {
  test('lists the payments received and sent in the period, with a running total', () => {
    const ledger = new FakeLedger()
    const [me, other] = [ledger.enrol('me'), ledger.enrol('other')]
    ledger.pay(other, me, 7n, '2025-12-31T23:59:59Z')
    ledger.pay(other, me, 30n)
    ledger.pay(me, other, 12n)
    ledger.pay(me, me, 5n)
    ledger.pay(other, me, 9n, period.to)
    const input = { ...me, events: ledger.events, viewingKeys: viewingKeysOf(ledger), period }
    const lines = readStatement(input)
    expect(lines.map(({ direction, counterparty, amount }) => [direction, counterparty, amount])).toEqual([
      ['received', other.address, 30n],
      ['sent', other.address, 12n],
      ['to itself', me.address, 5n],
    ])
    const report = presentStatement(input, lines, (name) => (name === other.address ? '=Ada "A" <b>' : undefined))
    expect(report.rows.map(({ cells }) => cells[6])).toEqual(['0.0000030', '0.0000018', '0.0000018'])
    // An account's payment to itself is no income.
    expect(JSON.parse(formatReport(report, 'json')).rows[2]).toMatchObject({
      received: null,
      sent: null,
      other: '0.0000005',
    })
    expect(formatReport(report, 'html')).toMatch(
      />Total<\/td><td[^>]*><div>0\.0000030<\/div><\/td><td[^>]*><div>0\.0000012</,
    )
    expect(JSON.parse(formatReport(report, 'json')).rows[1]).toMatchObject({ sent: '0.0000012', received: null })
    // No spreadsheet runs a name as a formula, and no page renders one as markup.
    expect(formatReport(report, 'csv')).toContain(',"\'=Ada ""A"" <b>",')
    // Without this mark a spreadsheet reads names in its own code page.
    expect(formatReport(report, 'csv')).toMatch(/^\ufeff\w/)
    expect(formatReport(report, 'html')).toContain('=Ada &quot;A&quot; &lt;b&gt;')
    expect(formatReport(report, 'table')).toContain('=Ada "A" <b>')
  })

  test('prints a page per month, whose table repeats its month and account', () => {
    const address = openPayroll().owner.address
    const line = { direction: 'sent', counterparty: address, transaction: 'a'.repeat(64), balance: undefined } as const
    const lines = [
      { ...line, date: '2026-01-31T23:59:59.000Z', amount: 12_345_0000000n },
      { ...line, date: '2026-02-01T00:00:00.000Z', amount: 5_0000000n },
      { ...line, date: '2026-02-02T00:00:00.000Z', amount: undefined, note: 'amount known to the channel' },
    ]
    const reported = { passphrase: 'A Network', token: TOKEN, asset: 'USDC' }
    const html = formatReport(
      presentStatement({ address, period, reported }, lines, () => undefined),
      'html',
    )
    const [head = '', ...pages] = html.split('<section>')
    expect(head).toContain('section + section { break-before: page; }')
    expect(pages).toHaveLength(2)
    for (const [index, month] of ['January 2026', 'February 2026'].entries()) {
      const [thead] = pages[index]?.split('</thead>') ?? []
      expect(thead?.split('<thead>')[1]).toContain(`${month}<span>Account: ${address}</span>`)
      expect(pages[index]).toContain('<dt>Amounts in</dt><dd>USDC</dd>')
      expect(pages[index]).toContain('<dt>To (excluded)</dt><dd>2026-07-01 00:00 UTC</dd>')
    }
    expect(pages[0]).toMatch(/Total<\/td>.*<div>12,345\.0000000<\/div>/)
    expect(pages[1]).toMatch(/data-title="Sent"><div><em>unknown<\/em><\/div>/)
    expect(pages[1]).toContain('One amount is unknown and not in the total.')
    expect(pages[1]).toMatch(/Total of all months<\/td>.*<div>12,350\.0000000<\/div>/)
  })

  test('reads a channel’s payments from the payloads of its calls', () => {
    const { ledger, owner, channel, events } = openPayroll()
    const lines = readStatement({ ...owner, events, viewingKeys: viewingKeysOf(ledger), period })
    expect(lines.map(({ direction, amount, spender }) => [direction, amount, spender])).toEqual([
      ['escrowed', 100n, undefined],
      ['sent', 40n, channel.address],
      ['sent', 25n, channel.address],
      ['returned', 35n, undefined],
    ])
    const lost = events.map((event, index) => (index === 1 ? { ...event, payload: undefined } : event))
    const partial = readStatement({ ...owner, events: lost, viewingKeys: viewingKeysOf(ledger), period })
    // Without the previous rest, the second amount is unknown as well.
    expect(partial.slice(1, 3).map(({ amount, note }) => [amount, note])).toEqual([
      [undefined, 'amount known to the channel and the auditors'],
      [undefined, 'amount known to the channel and the auditors'],
    ])
  })

  test('says which payment its own keys cannot open', () => {
    const ledger = new FakeLedger()
    const [me, other] = [ledger.enrol('me'), ledger.enrol('other')]
    const event = ledger.pay(me, other, 12n)
    // Another wallet's ephemeral secret, as after an import from another implementation.
    const keys = { ...me.keys, vk: me.keys.vk + 1n }
    const [line] = readStatement({ ...me, keys, events: [event], viewingKeys: viewingKeysOf(ledger), period })
    expect(line).toMatchObject({ amount: undefined, note: expect.stringContaining('cannot be derived again') })
    expect(() => openAsSender(keys, readPayment(event, TOKEN), other.keys.viewingKey)).toThrow(
      expect.objectContaining({ code: 'not-disclosable' }),
    )
  })
})

describe('an audit', () => {
  test('reads both channels, delegations, and the balance after a revocation', () => {
    const { ledger, owner, payee, delegation, rest } = openPayroll()
    const { secret } = auditor('auditor')
    const audit = readAudit(ledger.events, [secret])
    const of = (account: string) => audit.lines.filter((line) => line.account === account)
    expect(of(owner.address).map(({ operation, amount, spendable }) => [operation, amount, spendable])).toEqual([
      ['register', undefined, 0n],
      ['deposit', 500n, 0n],
      ['merge', undefined, 500n],
      ['set_spender', 100n, 400n],
      ['spender_transfer sent', 40n, 400n],
      ['spender_transfer sent', 25n, 400n],
      ['revoke_spender', 35n, 435n],
    ])
    expect(of(payee.address).map(({ amount, receiving }) => [amount, receiving])).toEqual([
      [undefined, 0n],
      [40n, 40n],
      [25n, 65n],
    ])
    const blinding = delegation.next.blinding + rest.blinding
    const entry = {
      spendable: encodePoint(commit({ value: 435n, blinding })),
      receiving: new Uint8Array(64),
    }
    const compare = (own: typeof entry) =>
      compareBooks(audit, { accounts: new Map([[owner.address, own]]), delegations: [], through: 1_008 })
    const isOfOwner = ({ account }: { account: string }) => account === owner.address
    expect(audit.problems).toEqual([])
    expect(compare(entry).filter(isOfOwner)).toEqual([])
    const wrong = { ...entry, spendable: encodePoint(commit({ value: 436n, blinding })) }
    expect(compare(wrong).filter(isOfOwner)).toEqual([
      {
        account: owner.address,
        problem:
          'the events from ledger 1004 to ledger 1008, read from the RPC, do not add up to the ledger’s spendable balance',
        isContradiction: true,
      },
    ])
  })

  test('compares the rest of each delegation with the ledger', () => {
    const { ledger, owner, channel, rest } = openPayroll()
    const { secret } = auditor('auditor')
    const isOpen = ledger.events.slice(0, -1)
    const { delegations } = readAudit(isOpen, [secret])
    expect(delegations).toMatchObject([{ owner: owner.address, spender: channel.address, rest }])
    const compare = (found: typeof delegations, value: bigint) => {
      const entry = { allowance_commitment: encodePoint(commit({ ...rest, value })) }
      const entries = { accounts: new Map(), delegations: [entry], through: 1_007 }
      return compareBooks({ accounts: new Map(), delegations: found }, entries)
    }
    expect(compare(delegations, rest.value)).toEqual([])
    expect(compare(delegations, rest.value + 1n)).toMatchObject([
      {
        account: owner.address,
        problem: expect.stringMatching(
          /^the events from ledger 1004 to ledger 1007, read from the RPC, do not add up to the ledger’s rest of the delegation/,
        ),
        isContradiction: true,
      },
    ])
    const none = { accounts: new Map(), delegations: [undefined], through: 1_007 }
    expect(compareBooks({ accounts: new Map(), delegations }, none)).toMatchObject([
      { problem: expect.stringMatching(/show a delegation to G.*, and the ledger has none$/), isContradiction: true },
    ])
    expect(compare(readAudit(isOpen, []).delegations, rest.value)).toMatchObject([
      {
        account: owner.address,
        problem: expect.stringMatching(/delegation to G.* is unknown/),
        isContradiction: false,
      },
    ])
    expect(readAudit(ledger.events, [secret]).delegations).toEqual([])
  })

  test('does not carry a balance forward from a delegation that it has not seen', () => {
    const { ledger, owner } = openPayroll()
    const revocation = ledger.events.at(-1)
    const audit = readAudit(revocation ? [revocation] : [], [auditor('auditor').secret])
    expect(audit.lines).toMatchObject([
      {
        account: owner.address,
        spendable: undefined,
        note: expect.stringContaining('unavailable until the next checkpoint'),
      },
    ])
  })

  test('needs the key from before a rotation for payments encrypted to it', () => {
    const ledger = new FakeLedger()
    const [from, to] = [ledger.enrol('from'), ledger.enrol('to')]
    ledger.pay(from, to, 3n)
    ledger.rotateAuditor()
    ledger.pay(from, to, 4n)
    const [before, after] = ledger.auditorKeys.map(({ secret }) => secret)
    const amounts = (...secrets: (bigint | undefined)[]) =>
      readAudit(
        ledger.events,
        secrets.flatMap((secret) => secret ?? []),
      ).lines.map(({ amount, note }) => amount ?? note)
    const unread = 'encrypted to another auditor, or to a key that was not given'
    expect(amounts(after)).toEqual([unread, unread, 4n, 4n])
    expect(amounts(before, after)).toEqual([3n, 3n, 4n, 4n])
  })

  test('reports channels that give different amounts', () => {
    const ledger = new FakeLedger()
    const [from, to] = [ledger.enrol('from'), ledger.enrol('to')]
    const { key, secret } = auditor('auditor')
    const transfer = (amount: bigint) =>
      encryptTransfer({
        keys: from.keys,
        opening: { value: 100n, blinding: 3n },
        amount,
        auditorSender: key,
        auditorRecipient: key,
        viewingKey: to.keys.viewingKey,
        salt: 77n,
      }).payload
    const forged = { ...transfer(10n), v_tilde_aud_r: transfer(11n).v_tilde_aud_r ?? new Uint8Array() }
    ledger.emit('transfer', [from.address, to.address], forged, AT)
    const { lines, problems } = readAudit(ledger.events, [secret])
    expect(problems).toMatchObject([{ account: from.address, isContradiction: true }])
    expect(lines.map(({ amount, note }) => [amount, note])).toEqual([
      [10n, 'the two channels give different amounts'],
      [11n, 'the two channels give different amounts'],
    ])
  })
})
