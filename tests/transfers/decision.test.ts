import { describe, expect, test } from 'vitest'
import { decide, type Evidence, type HashAnswer } from '#lib/transfers/decide.ts'
import { FAILURE, SUCCESS } from './records.ts'

const MAX_TIME = 1_000
const RECORDED = 50

/** A NOT_FOUND response, by default as of a ledger before maxTime, with the full history. */
const unknown = (given: Partial<HashAnswer> = {}): HashAnswer => ({
  record: undefined,
  latestLedger: 60,
  closedAt: 900,
  oldestLedger: 1,
  ...given,
})
/** A NOT_FOUND response whose latest ledger closed after maxTime. */
const over = (given: Partial<HashAnswer> = {}) => unknown({ latestLedger: 80, closedAt: MAX_TIME + 1, ...given })
const found = (record: HashAnswer['record'], given: Partial<HashAnswer> = {}) => unknown({ record, ...given })

const evidence = (given: Partial<Evidence>): Evidence => ({
  sequenceNumber: 8n,
  recordedLedger: RECORDED,
  maxTime: MAX_TIME,
  answers: [unknown(), unknown()],
  ...given,
})

/** It failed before the number was used up: another envelope may still use it. */
const NOT_CONSUMED = { ...FAILURE, consumed: false, resultCode: 'txTooLate', feeCharged: 7n }
const used = { number: 8n, latestLedger: 60 }
const unused = { number: 7n, latestLedger: 80 }
const forgetful = over({ oldestLedger: RECORDED + 1 })

/** The network was reset: its history is complete, and contains only ledgers with lower numbers. */
const restored = over({ latestLedger: RECORDED - 1 })

type Case = [name: string, answers: HashAnswer[], account: Evidence['account'], status: string]
const [none, gone] = [undefined, (latestLedger: number) => ({ number: undefined, latestLedger })]
const both = [unknown(), unknown()]
const lateHistory = unknown({ oldestLedger: RECORDED + 1 })

const CASES: Case[] = [
  ['ledgers of lower numbers, every maxTime passed', [restored, restored], none, 'open'],
  ['ledgers of lower numbers, the number used', [restored, restored], used, 'unknown'],
  ['ledgers of lower numbers, the number unused', [restored, restored], unused, 'expired'],
  ['nothing is known', both, none, 'open'],
  ['no hash was looked up', [], used, 'open'],
  ['rule 1: one hash is found, the other unknown', [unknown(), found(SUCCESS)], none, 'succeeded'],
  ['rule 1: the other of a node far behind', [unknown({ latestLedger: 1 }), found(SUCCESS)], none, 'succeeded'],
  ['rule 1: a failure that used the number', [found(FAILURE), unknown()], none, 'failed'],
  ['rule 1: a rival of one that did not use the number', [found(NOT_CONSUMED), found(SUCCESS)], none, 'succeeded'],
  ['rule 1: without history, with an account that is gone', [forgetful, found(SUCCESS)], gone(80), 'succeeded'],

  ['rule 2: the number is used, every answer is as late', both, used, 'expired'],
  ['rule 2: a later number is used', both, { ...used, number: 12n }, 'expired'],
  ['rule 2: the number before is used', both, { ...used, number: 7n }, 'open'],
  ['rule 2: one answer is a ledger behind the account’s', [unknown(), unknown({ latestLedger: 59 })], used, 'open'],
  ['rule 2: one answer’s history starts a ledger too late', [unknown(), lateHistory], used, 'open'],
  ['rule 2: history that starts at the recorded ledger', [unknown({ oldestLedger: RECORDED })], used, 'expired'],
  ['rule 2: an account that is gone proves nothing', both, gone(60), 'open'],
  ['rule 2: only a record that did not use the number', [found(NOT_CONSUMED), unknown()], used, 'failed'],
  ['a record that did not use the number, and a rival that may', [found(NOT_CONSUMED), unknown()], none, 'open'],

  ['rule 3: every answer closed after maxTime', [over(), over()], none, 'expired'],
  ['rule 3: one closed at maxTime: equal is not enough', [over(), over({ closedAt: MAX_TIME })], none, 'open'],
  ['rule 3: one of three is of a node that lags', [over(), unknown(), over()], none, 'open'],
  ['rule 3: though the account is gone', [over()], gone(80), 'expired'],
  [
    'rule 3: a record that did not use the number',
    [found(NOT_CONSUMED, { closedAt: MAX_TIME + 1 }), over()],
    none,
    'failed',
  ],

  ['rule 4: without history, before the account was read', [over(), forgetful], none, 'open'],
  ['rule 4: without history, the number is unused', [over(), forgetful], unused, 'expired'],
  ['rule 4: by an account read before maxTime', [over(), forgetful], { ...unused, latestLedger: 79 }, 'open'],
  ['rule 4: without history, the number is used', [over(), forgetful], { ...used, latestLedger: 80 }, 'unknown'],
  ['rule 4: without history, the account is gone', [forgetful], gone(90), 'unknown'],
  ['rule 4: without history, but not past maxTime', [unknown({ oldestLedger: 55 })], used, 'open'],
]

test.each(CASES)('%s: %4$s', (_, answers, account, status) => {
  expect(decide(evidence({ answers, ...(account && { account }) }))?.status ?? 'open').toBe(status)
})

describe('the fee that the service paid', () => {
  test('is that of every record, once for both of its hashes', () => {
    const bump = { ...SUCCESS, hash: '33'.repeat(32) }
    const decision = decide(evidence({ answers: [found(bump), found(bump), found(NOT_CONSUMED)] }))
    expect(decision).toEqual({ status: 'succeeded', record: bump, feeCharged: SUCCESS.feeCharged + 7n })
  })

  test('is nothing for an expired transfer, which has txBadSeq if an unknown transaction used its number', () => {
    expect(decide(evidence({ account: used }))).toEqual({ status: 'expired', resultCode: 'txBadSeq' })
    expect(decide(evidence({ answers: [over(), over()] }))).toEqual({ status: 'expired' })
  })
})
