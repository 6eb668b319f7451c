import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Bundle } from '#lib/disclosure/bundle.ts'
import { DisclosureError } from '#lib/disclosure/disclosure-error.ts'
import type { DisclosureSource } from '#lib/disclosure/ledger-source.ts'
import { DISCLOSURE_FILES } from '#lib/disclosure/node/files.ts'
import { openDisclosureProver } from '#lib/disclosure/node/prover.ts'
import { verifyDisclosure } from '#lib/disclosure/verify.ts'
import { auditor } from '../wallet/fixtures.ts'
import { PASSPHRASE } from './fake-ledger.ts'
import { disclose, type Honest, openCase, REQUESTER } from './honest.ts'

let prover: Awaited<ReturnType<typeof openDisclosureProver>>

beforeAll(async () => {
  prover = await openDisclosureProver(PASSPHRASE, {}, () => undefined)
})
afterAll(() => prover.destroy())

const verify = ({ request, bundles }: Pick<Honest, 'request' | 'bundles'>, source: DisclosureSource) =>
  verifyDisclosure({ source, files: DISCLOSURE_FILES }, { request, secret: REQUESTER, bundles })

/** A case whose second payment was encrypted to a different auditor key from the first one. */
function rotatedCase(amounts: bigint[], last: bigint) {
  const given = openCase(amounts)
  given.ledger.rotateAuditor()
  given.paid.push(given.ledger.pay(given.employer, given.contractor, last))
  return given
}

test('a threshold under two keys of an auditor is proved under the one whose payments fit a proof', async () => {
  const rotated = rotatedCase(
    Array.from({ length: 40 }, () => 1n),
    35n,
  )
  const prove = (atLeast: bigint) => disclose(rotated, prover, 'auditor-recipient', { statement: 'total', atLeast })
  const disclosed = await prove(35n)
  expect(disclosed.bundles.map(({ events }) => events.length)).toEqual([1])
  await expect(verify(disclosed, rotated.ledger.source())).resolves.toMatchObject({ subtotals: [] })
  await expect(prove(60n)).rejects.toMatchObject({ code: 'too-many-payments', message: /under one key/ })
  await expect(prove(80n)).rejects.toMatchObject({ code: 'not-true' })
})

test('a total under two keys of an auditor has a proof for each, and its subtotals are shown', async () => {
  const rotated = rotatedCase([7n], 40n)
  const { request, bundles } = await disclose(rotated, prover, 'auditor-recipient', { statement: 'total' })
  const source = rotated.ledger.source()
  expect(bundles).toHaveLength(2)
  expect(await verify({ request, bundles }, source)).toMatchObject({ value: 47n, subtotals: [7n, 40n] })
  const [first, second] = bundles
  const together = { ...first, events: bundles.flatMap(({ events }) => events) } as Bundle
  await expect(verify({ request, bundles: [together] }, source)).rejects.toMatchObject({ code: 'bundle-invalid' })
  // Every key is read before the first proof is verified.
  const changed = { ...first, proof: new Uint8Array(16_224) } as Bundle
  const isLater = ({ transaction }: { transaction: string }) => transaction === second?.events[0]?.transaction
  const unknown: DisclosureSource = {
    ...source,
    findAuditorKeys: async (id, events) => {
      const payments = rotated.ledger.events.filter((each) => events.some((event) => event.id === each.id))
      if (payments.some(isLater)) throw new DisclosureError('auditor-key-unknown', 'it was registered later')
      return await source.findAuditorKeys(id, events)
    },
  }
  await expect(verify({ request, bundles: second ? [changed, second] : [] }, unknown)).rejects.toMatchObject({
    code: 'auditor-key-unknown',
  })
  const swapped = { ...first, events: second?.events ?? [] } as Bundle
  await expect(verify({ request, bundles: [swapped] }, source)).rejects.toMatchObject({ code: 'proof-invalid' })
})

test('a total of several bundles is out of range at 2^127 and above', async () => {
  const rotated = rotatedCase([2n ** 126n], 2n ** 126n)
  const disclosed = await disclose(rotated, prover, 'auditor-recipient', { statement: 'total' })
  expect(disclosed.bundles).toHaveLength(2)
  await expect(verify(disclosed, rotated.ledger.source())).rejects.toMatchObject({ code: 'cannot-decrypt' })
})

describe('a threshold leaves out a payment', () => {
  const about = (atLeast?: bigint) => ({ statement: 'total', ...(atLeast !== undefined && { atLeast }) }) as const

  test('whose ephemeral secret the payer cannot derive again', async () => {
    const given = openCase([7n, 30n])
    const { employer, contractor, ledger } = given
    const keys = { ...employer.keys, vk: employer.keys.vk + 1n }
    given.paid.push(ledger.pay({ ...employer, keys }, contractor, 500n))
    const disclosed = await disclose(given, prover, 'sender', about(37n))
    await expect(verify(disclosed, ledger.source())).resolves.toMatchObject({ payments: [{}, {}] })
    const refused = { code: 'not-disclosable' }
    await expect(disclose(given, prover, 'sender', about(38n))).rejects.toMatchObject(refused)
    await expect(disclose(given, prover, 'sender', about())).rejects.toMatchObject(refused)
  })

  test('whose recipient no longer has an account', async () => {
    const given = openCase([7n])
    const { employer, stranger, ledger } = given
    given.paid.push(ledger.pay(employer, stranger, 500n))
    ledger.accounts.delete(stranger.address)
    const disclosed = await disclose(given, prover, 'sender', about(7n))
    await expect(verify(disclosed, ledger.source())).resolves.toMatchObject({ payments: [{}] })
    await expect(disclose(given, prover, 'sender', about(8n))).rejects.toMatchObject({ code: 'not-registered' })
  })

  test('that was encrypted to a key that the auditor does not provide', async () => {
    const given = rotatedCase([7n], 500n)
    const { ledger } = given
    const [kept] = ledger.auditorKeys
    const source = ledger.source()
    ledger.auditorKeys.pop()
    // The ledger still has the second key, but only the first is given.
    const findAuditorKeys: DisclosureSource['findAuditorKeys'] = async (_, events) =>
      events.map(({ ledger: at }) =>
        at > (given.paid[0]?.ledger ?? 0) ? auditor('auditor 1').key : (kept?.key ?? new Uint8Array()),
      )
    ledger.source = () => ({ ...source, findAuditorKeys })
    const disclosed = await disclose(given, prover, 'auditor-recipient', about(7n))
    await expect(verify(disclosed, ledger.source())).resolves.toMatchObject({ payments: [{}] })
    await expect(disclose(given, prover, 'auditor-recipient', about(8n))).rejects.toMatchObject({ code: 'other-keys' })
  })
})
