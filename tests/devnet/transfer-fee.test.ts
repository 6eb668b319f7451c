import { readFile } from 'node:fs/promises'
import { Keypair, type Transaction, TransactionBuilder } from '@stellar/stellar-sdk'
import { expect, test } from 'vitest'
import { auditorKeyKey } from '#lib/devnet/host/auditor-registry.ts'
import { confidentialAccountKey } from '#lib/devnet/host/token/account.ts'
import { delegationKey } from '#lib/devnet/host/token/delegation.ts'
import { rentFee } from '#lib/devnet/transaction/fees.ts'
import { BASE_FEE } from '#lib/devnet/transaction/validity.ts'
import { prover } from '#lib/prover/stand-in.ts'
import { syncBalance } from '#lib/wallet/balance.ts'
import { buildDeposit, buildMerge, buildRegister, buildTransfer } from '#lib/wallet/calls.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { RENT_MARGIN, VALIDITY_SECONDS } from '#lib/wallet/transaction.ts'
import { apply, contractor, employer, openNetwork } from './host-fixture.ts'
import { fund, setSpenderRequest } from './host-payload.ts'
import { issuer, keypair, passphrase, shareNetwork, wrap } from './network-fixture.ts'

const DAY = 17_280

test('covers the rent of each entry that must be extended after the simulation', () => {
  const network = openNetwork()
  fund(network, employer, contractor)
  apply(network, setSpenderRequest(network, { owner: employer, spender: contractor }))
  const { token, auditor } = network.contracts
  const keys = [
    confidentialAccountKey(token, employer.publicKey()),
    delegationKey(token, employer.publicKey(), contractor.publicKey()),
    auditorKeyKey(auditor, 0),
  ]
  const extensions = keys.map(({ id }) => {
    const entry = network.state.get(id)
    if (!entry) throw new Error('the entry is missing')
    // From one ledger below 29 days to 30 days, in the last ledger before the max time if one closes every second.
    const before = { ...entry, liveUntil: 29 * DAY - 1 }
    return rentFee([{ key: id, before, after: { ...entry, liveUntil: 30 * DAY + VALIDITY_SECONDS } }], 1)
  })
  for (const extension of extensions) expect(extension).toBeLessThanOrEqual(RENT_MARGIN)
  // The margin is no larger than an account's entry needs.
  expect(extensions[0]).toBeGreaterThan((RENT_MARGIN * 9n) / 10n)
})

const network = shareNetwork()

test('bids for a transfer twice what simulation and rent margin add up to, and is refunded the rest', async () => {
  const { token, auditor } = network.devnet.deployment.contracts
  const deployment = { rpc: network.server, passphrase, token, auditor, prover, now: () => network.clock.now }
  const [payer, payee, sponsor] = [keypair('payer'), keypair('payee'), Keypair.random()]
  await network.createAccounts(payer, payee, sponsor)
  const [from, to] = [openHolder(payer, token), openHolder(payee, token)]
  /** Applies a call under a fee bump of twice its fee. */
  const settle = async ({ signedXdr }: { signedXdr: string }) => {
    const inner = TransactionBuilder.fromXdr(signedXdr, passphrase) as Transaction
    const bid = 2n * BigInt(inner.fee)
    const outcome = await network.settle(wrap(inner, sponsor, bid))
    if (outcome.status !== 'SUCCESS') throw new Error(outcome.status)
    return { fee: BigInt(inner.fee), bid, charged: outcome.resultXdr.feeCharged }
  }
  for (const holder of [from, to]) await settle(await buildRegister(deployment, holder, { auditorId: 0 }))
  await settle(await buildDeposit(deployment, issuer, { to: from.address, amount: 100n }))
  await settle(await buildMerge(deployment, payer))
  const pay = async (margin?: bigint) => {
    const { spendable: opening } = await syncBalance(deployment, from)
    const options = margin === undefined ? {} : { margin }
    return await settle(await buildTransfer(deployment, from, { to: to.address, amount: 1n, opening }, options))
  }
  const [first, later, bare] = [await pay(), await pay(), await pay(0n)]
  const near = (amount: bigint, figure: number) => expect(Math.abs(Number(amount) / figure - 1)).toBeLessThan(0.025)
  // Charged by stellar-core 26.1.
  near(first.charged, 411_200)
  near(later.charged, 227_450)
  // Two accounts and the auditor's key.
  expect(later.fee).toBe(bare.fee + 3n * RENT_MARGIN)
  expect(later.charged).toBe(bare.charged)
  // The simulation's margins on instructions, size and refundable fees are a tenth of the charge.
  expect(Number(bare.fee) / Number(bare.charged)).toBeLessThan(1.11)
  expect(Number(bare.bid) / Number(bare.charged)).toBeLessThan(2.21)
  // The table of the documentation: simulation, inner fee, bid, charge.
  const documented = await readFile('docs/decisions.md', 'utf8')
  const simulated = ({ fee }: typeof first) => fee - BASE_FEE - 3n * RENT_MARGIN
  for (const [one, other] of [
    [simulated(first), simulated(later)],
    [first.fee, later.fee],
    [first.bid, later.bid],
    [first.charged, later.charged],
  ] as const) {
    expect(documented).toContain(`| ${one.toLocaleString('en-US')} | ${other.toLocaleString('en-US')} |`)
  }
})
