import { Keypair, Transaction } from '@stellar/stellar-sdk'
import { relayChannels } from '#drizzle/schema/relay.ts'
import { buildMerge } from '#lib/wallet/calls.ts'
import type { RelayService } from '../relay/relay-service.ts'
import { openRunFixture } from '../relay/run-fixture.ts'
import type { FilledRecords } from '../support/filled-database.ts'

type Work = () => Promise<{ status: number; body: unknown }>
/** Prepares a request that writes, and resolves to it. */
type WriteCase = (service: RelayService, records: FilledRecords) => Promise<Work>

const PAGE = 100

/** The writes that happen most often, each by an employer with many records or by a new one. */
export const WRITES: Record<string, WriteCase> = {
  'POST /auth/sep10/verify': async (service) => {
    const wallet = Keypair.random()
    const { body } = await service.ask('GET', `/auth/sep10/challenge?account=${wallet.publicKey()}`)
    const challenge = new Transaction(String(body.transaction), String(body.network_passphrase))
    challenge.sign(wallet)
    return () => service.ask('POST', '/auth/sep10/verify', { body: { transaction: challenge.toXdr() } })
  },
  'POST /contractors/bulk': async (service, { largeEmployer }) => {
    const session = await service.wallet(largeEmployer)
    const rows = Array.from({ length: PAGE }, (_, n) => ({
      ...{ name: `Row ${n}`, address: Keypair.random().publicKey(), externalId: `row/${n}` },
    }))
    const headers = { 'Idempotency-Key': 'import' }
    return () => service.ask('POST', '/contractors/bulk', { session, headers, body: { rows } })
  },
  'POST /contractors/{id}/invite': async (service, { largeEmployer }) => {
    const session = await service.wallet(largeEmployer)
    const body = { name: 'Bob', email: 'bob@example.com' }
    const contractor = await service.ask('POST', '/contractors', { session, body })
    return () => service.ask('POST', `/contractors/${contractor.body.id}/invite`, { session })
  },
  'POST /batches/{id}/instructions': async (service, { largeEmployer }) => {
    const session = await service.wallet(largeEmployer)
    const { id, instructions } = await draftOf(service, session)
    return () => service.ask('POST', `/batches/${id}/instructions`, { session, body: { instructions } })
  },
  'POST /batches/{id}/ready': async (service, { largeEmployer }) => {
    const session = await service.wallet(largeEmployer)
    const { id, instructions } = await draftOf(service, session)
    await service.ask('POST', `/batches/${id}/instructions`, { session, body: { instructions } })
    return () => service.ask('POST', `/batches/${id}/ready`, { session })
  },
  'POST /batch': async (service, { largeEmployer }) => {
    const session = await service.wallet(largeEmployer)
    return () => service.ask('POST', '/batch', { session, body: { amounts: [1, 2] } })
  },
  'POST /batches/{id}/run': async (service) => {
    const runs = openRunFixture(service)
    const employer = await runs.employer()
    const batch = await runs.batchOf(employer, [1n])
    // As a relay announces the channel that can pay from delegations.
    await service.db.update(relayChannels).set({ runs: true, runProblem: null, problem: null })
    // The run begins behind the thousands of payouts that are queued on the busiest channel.
    await runs.delegate(employer, 1n, runs.channel, 50_000)
    return () => runs.run(batch)
  },
  'POST /transfer': async (service) => {
    const runs = openRunFixture(service)
    const employer = await runs.employer()
    const { payouts } = await runs.batchOf(employer, [1n])
    return () => runs.pay(employer, payouts[0] as (typeof payouts)[number], 1n)
  },
  'POST /funding/faucet': async (service) => {
    const { session } = await service.employ(0n)
    return () => service.ask('POST', '/funding/faucet', { session })
  },
  'POST /calls': async (service) => {
    const payer = await service.employ()
    const { signedXdr: signedXDR } = await buildMerge(service.ledger.network, payer.signer)
    return () => service.ask('POST', '/calls', { session: payer.session, body: { signedXDR } })
  },
}

/** A new batch of the employer, and instructions to pay its newest contractors. */
async function draftOf(service: RelayService, session: string) {
  const list = await service.ask<{ contractors: { id: string }[] }>('GET', `/contractors?limit=${PAGE}&status=ready`, {
    session,
  })
  const { body } = await service.ask('POST', '/batches', { session, body: { name: 'New' } })
  const instructions = list.body.contractors.map(({ id: contractorId }) => ({
    contractorId,
    encryptedAmount: 'sealed',
  }))
  return { id: String(body.id), instructions }
}
