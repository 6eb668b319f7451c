import { Operation } from '@stellar/stellar-sdk'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keypair, openTestNetwork, pay, perturb, root, type TestNetwork } from './network-fixture.ts'

const payer = keypair('payer')

let network: TestNetwork

describe('a node two ledgers behind', () => {
  beforeEach(async () => {
    network = await openTestNetwork({ lag: [2] })
    const make = Operation.createAccount({ destination: payer.publicKey(), startingBalance: '100' })
    await network.send(await network.build(root, make))
    for (let ledger = 0; ledger < 4; ledger += 1) network.close()
  })
  afterEach(() => network.stop())

  test('returns entries, history and simulations as of its latest ledger', async () => {
    const { sequence } = await network.server.getLatestLedger()
    const before = (await network.account(payer)).balance
    const transaction = await network.build(payer, pay())
    expect(await network.send(transaction)).toBe('PENDING')
    for (let ledger = 0; ledger < 2; ledger += 1) {
      network.close()
      expect((await network.find(transaction)).status).toBe('NOT_FOUND')
      expect((await network.account(payer)).balance).toBe(before)
    }
    network.close()
    const response = await network.find(transaction)
    expect(response).toMatchObject({ status: 'SUCCESS', ledger: sequence + 3, latestLedger: sequence + 3 })
    expect((await network.account(payer)).balance).toBeLessThan(before)
    expect((await network.server.getHealth()).latestLedger).toBe(sequence + 3)
  })

  test('rejects the next sequence number until the previous one has been applied', async () => {
    const first = await network.build(payer, pay())
    const second = perturb(first, { seqNum: BigInt(first.sequence) + 1n }, payer)
    await network.send(first)
    network.close()
    expect(await network.send(second)).toBe('txBadSeq')
    network.close()
    network.close()
    expect(await network.send(second)).toBe('PENDING')
  })
})

test('sends requests to the nodes in turn', async () => {
  network = await openTestNetwork({ lag: [0, 3] })
  try {
    for (let ledger = 0; ledger < 5; ledger += 1) network.close()
    const answers: number[] = []
    for (let request = 0; request < 4; request += 1) answers.push((await network.server.getHealth()).latestLedger)
    expect(answers.toSorted()).toEqual([3, 3, 6, 6])
    expect(answers[0]).not.toBe(answers[1])
  } finally {
    await network.stop()
  }
})
