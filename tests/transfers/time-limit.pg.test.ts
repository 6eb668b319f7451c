import { sql } from 'drizzle-orm'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { enrol } from '#lib/cli/client/participants.ts'
import { decodeInner } from '#lib/transfers/policy.ts'
import { sponsorTransfer } from '#lib/transfers/submit.ts'
import type { Fault } from '../support/fault-proxy.ts'
import { expectSponsoredOnce } from '../support/paid-once.ts'
import { shareService } from '../support/shared-service.ts'
import { type SilentProxy, startSilentProxy } from '../support/silent-proxy.ts'
import type { TestService } from '../support/test-service.ts'
import { prepareTransfer } from '../support/transfers.ts'
import { findDiscrepancies } from './quota-ledger.ts'

let service: TestService<'embedded'>
let payee: string
let silent: SilentProxy
beforeAll(async () => {
  service = await shareService('embedded')
  payee = (await enrol(service.ledger.network)).signer.publicKey()
  silent = await startSilentProxy(service.database.url)
})
afterAll(async () => {
  await silent?.close()
  await service?.close()
})
afterEach(async () => {
  service.ledger.proxy.rule(null)
  silent.wake()
  expect(await findDiscrepancies(service.db)).toEqual([])
})

const unavailable = {
  status: 500,
  body: { error: 'transfer failed', code: 'unavailable', advice: 'send the same `signedXDR` again' },
}

test('responds unavailable when the time is up during verification, and then records nothing', async () => {
  const { hash, signedXdr, post, employer } = await prepareTransfer(service, payee)
  const goOn = Promise.withResolvers<void>()
  service.ledger.proxy.rule(async ({ method }): Promise<Fault> => {
    if (method === 'simulateTransaction') await goOn.promise
    return 'pass'
  })
  const { tracker, sponsor, network } = service.running
  if (!sponsor) throw new Error('no sponsor')
  const hasReadFloat = Promise.withResolvers<void>()
  const readFloat = async (ledger: number) => {
    const float = await sponsor.readFloat(ledger)
    hasReadFloat.resolve()
    return float
  }
  const context = { tracker, sponsor: { ...sponsor, readFloat }, waitMs: 200 }
  const asked = sponsorTransfer(context, decodeInner(signedXdr, network.passphrase))
  await expect(asked).rejects.toMatchObject({ code: 'unavailable' })
  goOn.resolve()
  // On a slow machine, the time is up before that is read.
  await Promise.race([hasReadFloat.promise, new Promise((resolve) => setTimeout(resolve, 5_000))])
  await new Promise((resolve) => setTimeout(resolve, 500))
  expect(await service.findTransfer(hash)).toBeUndefined()
  expect(await post()).toMatchObject({ status: 200 })
  await expectSponsoredOnce(service, employer, hash)
})

test('responds in time while the database swallows packets', async () => {
  const { signedXdr, post, employer } = await prepareTransfer(service, payee)
  await service.withVariables({ DATABASE_URL: silent.url, TRANSFER_WAIT: '1' }, async ({ database }) => {
    const db = await database()
    silent.fall()
    // The driver gives this query up after twenty seconds.
    const query = db.execute(sql`SELECT 1`).then(
      () => undefined,
      () => undefined,
    )
    const post = (path: string) =>
      service.ask('POST', path, { session: employer.session, body: { signedXDR: signedXdr } })
    const responses = await Promise.all(['/transfer', '/calls'].map((path) => Promise.race([post(path), query])))
    expect(responses).toMatchObject([unavailable, { status: 500, body: { code: 'unavailable' } }])
    silent.cut()
  })
  silent.wake()
  expect(await post()).toMatchObject({ status: 200 })
})

test('joins the transfer whose commit got no response', async () => {
  const { hash, signedXdr, post, employer } = await prepareTransfer(service, payee)
  await service.withVariables({ DATABASE_URL: silent.url, TRANSFER_WAIT: '10' }, async ({ database }) => {
    await database()
    silent.muteCommitOf('insert into "envelopes"')
    expect(await service.post(employer, { signedXDR: signedXdr })).toEqual(unavailable)
    silent.cut()
  })
  silent.wake()
  expect(await service.findTransfer(hash)).toMatchObject({ account: employer.address })
  expect(await post()).toMatchObject({ status: 200 })
  await expectSponsoredOnce(service, employer, hash)
})
