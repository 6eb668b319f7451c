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

const CASES: [string, Partial<Evidence>, string][] = [
  ['ledgers of lower numbers, every maxTime passed', { answers: [restored, restored] }, 'open'],
  ['ledgers of lower numbers, the number used', { answers: [restored, restored], account: used }, 'unknown'],
  ['ledgers of lower numbers, the number unused', { answers: [restored, restored], account: unused }, 'expired'],
  ['nothing is known', {}, 'open'],
  ['no hash was looked up', { answers: [], account: used }, 'open'],
  ['rule 1: one hash is found, the other unknown', { answers: [unknown(), found(SUCCESS)] }, 'succeeded'],
  [
    'rule 1: one hash is found, the other of a node far behind',
    { answers: [unknown({ latestLedger: 1 }), found(SUCCESS)] },
    'succeeded',
  ],
  ['rule 1: a failure that used the number', { answers: [found(FAILURE), unknown()] }, 'failed'],
  [
    'rule 1: a rival succeeded after one that did not use the number',
    { answers: [found(NOT_CONSUMED), found(SUCCESS)] },
    'succeeded',
  ],
  [
    'rule 1: without history, with an account that is gone',
    { answers: [forgetful, found(SUCCESS)], account: { number: undefined, latestLedger: 80 } },
    'succeeded',
  ],

  ['rule 2: the number is used, every answer is as late', { account: used }, 'expired'],
  ['rule 2: a later number is used', { account: { ...used, number: 12n } }, 'expired'],
  ['rule 2: the number before is used', { account: { ...used, number: 7n } }, 'open'],
  [
    'rule 2: one answer is a ledger behind the account’s',
    { answers: [unknown(), unknown({ latestLedger: 59 })], account: used },
    'open',
  ],
  [
    'rule 2: one answer’s history starts a ledger too late',
    { answers: [unknown(), unknown({ oldestLedger: RECORDED + 1 })], account: used },
    'open',
  ],
  [
    'rule 2: history that starts at the recorded ledger',
    { answers: [unknown({ oldestLedger: RECORDED })], account: used },
    'expired',
  ],
  ['rule 2: an account that is gone proves nothing', { account: { number: undefined, latestLedger: 60 } }, 'open'],
  [
    'rule 2: a record that did not use the number, and nothing else',
    { answers: [found(NOT_CONSUMED), unknown()], account: used },
    'failed',
  ],
  ['a record that did not use the number, and a rival that may', { answers: [found(NOT_CONSUMED), unknown()] }, 'open'],

  ['rule 3: every answer closed after maxTime', { answers: [over(), over()] }, 'expired'],
  ['rule 3: one closed at maxTime: equal is not enough', { answers: [over(), over({ closedAt: MAX_TIME })] }, 'open'],
  ['rule 3: one of three is of a node that lags', { answers: [over(), unknown(), over()] }, 'open'],
  [
    'rule 3: though the account is gone',
    { answers: [over()], account: { number: undefined, latestLedger: 80 } },
    'expired',
  ],
  [
    'rule 3: a record that did not use the number',
    { answers: [found(NOT_CONSUMED, { closedAt: MAX_TIME + 1 }), over()] },
    'failed',
  ],

  ['rule 4: without history, before the account was read', { answers: [over(), forgetful] }, 'open'],
  ['rule 4: without history, the number is unused', { answers: [over(), forgetful], account: unused }, 'expired'],
  [
    'rule 4: by an account that was read before maxTime',
    { answers: [over(), forgetful], account: { ...unused, latestLedger: 79 } },
    'open',
  ],
  [
    'rule 4: without history, the number is used',
    { answers: [over(), forgetful], account: { number: 8n, latestLedger: 80 } },
    'unknown',
  ],
  [
    'rule 4: without history, the account is gone',
    { answers: [forgetful], account: { number: undefined, latestLedger: 90 } },
    'unknown',
  ],
  [
    'rule 4: without history, but not past maxTime',
    { answers: [unknown({ oldestLedger: 55 })], account: { number: 8n, latestLedger: 60 } },
    'open',
  ],
]

test.each(CASES)('%s: %3$s', (_, given, status) => {
  expect(decide(evidence(given))?.status ?? 'open').toBe(status)
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
