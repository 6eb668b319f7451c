import { Keypair, Operation, TransactionBuilder, xdr } from '@stellar/stellar-sdk'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { enrol, sendAndWait } from '#lib/cli/client/participants.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { sponsorTransfer } from '#lib/transfers/submit.ts'
import { openTracker } from '#lib/transfers/track.ts'
import { buildTransfer } from '#lib/wallet/calls.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { expectSponsoredOnce } from '../support/paid-once.ts'
import { shareService } from '../support/shared-service.ts'
import type { SignedInPayer, TestService } from '../support/test-service.ts'
import { beforeFirst, next, prepareTransfer, sendAnswer } from '../support/transfers.ts'
import { bareResult } from './ledger-answers.ts'
import { findDiscrepancies } from './quota-ledger.ts'

let service: TestService<'embedded'>
let payee: string
beforeAll(async () => {
  service = await shareService('embedded')
  payee = (await enrol(service.ledger.network)).signer.publicKey()
})
afterAll(() => service?.close())
afterEach(async () => {
  service.ledger.proxy.rule(null)
  expect(await findDiscrepancies(service.db)).toEqual([])
})

const latestLedger = async () => (await service.ledger.network.rpc.getLatestLedger()).sequence

test('submits a rejected transaction once per ledger, however often its client posts it', async () => {
  const { employer, hash, post } = await prepareTransfer(service, payee)
  const refused = { status: 500, body: { code: 'transfer-refused', reason: 'txBadAuth' } }
  service.ledger.proxy.rule(next('sendTransaction', 1_000, { answer: sendAnswer('ERROR', bareResult('txBadAuth')) }))
  service.ledger.proxy.calls.clear()
  const before = await latestLedger()
  expect(await post()).toMatchObject(refused)
  for (let round = 0; round < 3; round += 1) {
    const answers = await Promise.all(Array.from({ length: 10 }, post))
    for (const answer of answers) expect(answer).toMatchObject(refused)
  }
  expect(service.ledger.proxy.calls.get('sendTransaction')).toBeLessThanOrEqual((await latestLedger()) - before + 1)
  service.ledger.proxy.rule(null)
  expect(await post()).toMatchObject({ status: 200 })
  await expectSponsoredOnce(service, employer, hash)
})

test('shares one lookup among concurrent requests for the same transfer', async () => {
  const { hash, post } = await prepareTransfer(service, payee)
  service.ledger.proxy.rule(next('sendTransaction', 1_000, { answer: sendAnswer('PENDING') }))
  const waiting = post()
  await expect.poll(async () => (await service.findTransfer(hash))?.envelope.firstSentAt).toBeInstanceOf(Date)
  const row = await service.findTransfer(hash)
  const { network, database, now } = service.running
  const other = openTracker({ network, database, now })
  let lookUps = 0
  const goOn = Promise.withResolvers<void>()
  service.ledger.proxy.rule(async ({ method, params }): Promise<Fault> => {
    if (method === 'getTransaction' && [hash, row?.envelope.outerHash].includes(String(params.hash))) lookUps += 1
    await goOn.promise
    return 'pass'
  })
  if (!row) throw new Error('no row')
  const polls = Array.from({ length: 20 }, () => other.track([row.id], { waitMs: 60_000, lookUp: 'requested' }))
  await expect.poll(() => lookUps).toBeGreaterThan(0)
  goOn.resolve()
  await Promise.all(polls)
  await other.stop()
  // One lookup of both hashes, and the lookups of two trackers: 20 lookups would be 40 calls.
  expect(lookUps).toBeLessThan(20)
  service.ledger.proxy.rule(null)
  expect(await waiting).toMatchObject({ status: 200 })
})

describe('other signatures', () => {
  let outsider: Keypair
  beforeAll(async () => {
    outsider = Keypair.random()
    await fetch(`${service.ledger.network.friendbotUrl}?addr=${outsider.publicKey()}`)
  })

  /** Changes the signers of an account by a transaction that uses none of its sequence numbers. */
  async function setOptions({ address, signer }: SignedInPayer, options: object): Promise<void> {
    const source = await service.ledger.network.rpc.getAccount(outsider.publicKey())
    const transaction = new TransactionBuilder(source, {
      fee: '200',
      networkPassphrase: service.ledger.network.passphrase,
    })
      .addOperation(Operation.setOptions({ source: address, ...options }))
      .setTimeout(60)
      .build()
    transaction.sign(outsider, signer)
    await sendAndWait(service.ledger.network, transaction.toXdr())
  }

  const accountKey = (address: string) =>
    xdr.LedgerKey.account(new xdr.LedgerKeyAccount({ accountId: Keypair.fromPublicKey(address).xdrAccountId() })).toXdr(
      'base64',
    )

  /** The same transaction, signed by `signer` alone. */
  function signedBy(signer: Keypair, signedXdr: string): string {
    const envelope = xdr.TransactionEnvelope.fromXdr(signedXdr, 'base64')
    if (envelope.type !== 'envelopeTypeTx') throw new Error('not a plain envelope')
    const unsigned = new xdr.TransactionV1Envelope({ tx: envelope.v1.tx, signatures: [] })
    const bare = xdr.TransactionEnvelope.envelopeTypeTx(unsigned).toXdr('base64')
    const built = TransactionBuilder.fromXdr(bare, service.ledger.network.passphrase)
    built.sign(signer)
    return built.toXdr()
  }

  /** A transfer that the network has refused, since the key that signed it lost its weight on the way. */
  async function prepareRefused() {
    const employer = await service.employ()
    const second = Keypair.random()
    await setOptions(employer, { signer: { ed25519PublicKey: second.publicKey(), weight: 1 } })
    const transfer = { to: payee, amount: 1n, opening: employer.opening }
    const { hash, signedXdr } = await buildTransfer(service.ledger.network, employer, transfer)
    service.ledger.proxy.rule(beforeFirst('sendTransaction', () => setOptions(employer, { masterWeight: 0 })))
    const post = (signedXDR = signedXdr) => service.post(employer, { signedXDR })
    expect(await post()).toMatchObject({ status: 500, body: { code: 'transfer-refused', reason: 'txBadAuth' } })
    return {
      employer,
      hash,
      post,
      outerHash: (await service.findTransfer(hash))?.envelope.outerHash,
      renewed: signedBy(second, signedXdr),
    }
  }

  test('replace those that the network rejected: the same transfer, paid once', async () => {
    const { employer, hash, post, outerHash, renewed } = await prepareRefused()
    const answer = await post(renewed)
    const row = await service.findTransfer(hash)
    expect(answer).toEqual({ status: 200, body: { hash: row?.envelope.outerHash, status: 'SUCCESS' } })
    expect(row).toMatchObject({ status: 'succeeded', envelope: { resultCode: null } })
    expect(row?.envelope.outerHash).not.toBe(outerHash)
    await expectSponsoredOnce(service, employer, hash)
    // A post with the refused signatures is still the same request.
    expect(await post()).toEqual(answer)
  })

  test('change nothing if they are also invalid', async () => {
    const { hash, post, outerHash, renewed } = await prepareRefused()
    const stranger = await service.post(await service.employ(), { signedXDR: signedBy(Keypair.random(), renewed) })
    expect(stranger).toMatchObject({ status: 403 })
    expect(await post(signedBy(Keypair.random(), renewed))).toMatchObject({ body: { code: 'transfer-refused' } })
    expect(await service.findTransfer(hash)).toMatchObject({ status: 'open', envelope: { outerHash } })
    expect(await post(renewed)).toMatchObject({ status: 200 })
  })

  test('are refused while the account cannot be read, and may be posted again', async () => {
    const { employer, hash, post, outerHash, renewed } = await prepareRefused()
    const key = accountKey(employer.address)
    let isReadable = false
    let denied = 0
    service.ledger.proxy.rule(({ method, params: { keys } }): Fault => {
      if (method !== 'getLedgerEntries' || isReadable || !String(keys).includes(key)) return 'pass'
      denied += 1
      return { status: 500 }
    })
    // A poll that read the account earlier would still confirm the refusal, so wait until it ends and the next one
    // begins.
    await expect.poll(() => denied).toBeGreaterThan(0)
    const { tracker, sponsor, network } = service.running
    const inner = decodeInner(renewed, network.passphrase)
    const asked = sponsorTransfer({ tracker, sponsor, waitMs: 5_000 }, inner)
    await expect(asked).rejects.toMatchObject({ code: 'transfer-open' })
    expect(await service.findTransfer(hash)).toMatchObject({ status: 'open', envelope: { outerHash } })
    isReadable = true
    expect(await post(renewed)).toMatchObject({ status: 200 })
  })
})
