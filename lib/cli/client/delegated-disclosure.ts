import { writeFile } from 'node:fs/promises'
import type { Keypair } from '@stellar/stellar-sdk'
import { environment } from '#lib/config/environment.ts'
import { authorizeDisclosure, requireAuthorization } from '#lib/disclosure/authorization.ts'
import { encodeBundles } from '#lib/disclosure/bundle.ts'
import { DisclosureError } from '#lib/disclosure/disclosure-error.ts'
import { type DisclosureSource, openLedgerSource } from '#lib/disclosure/ledger-source.ts'
import { openDisclosureProver } from '#lib/disclosure/node/prover.ts'
import { decodePayment, type Payment, readPayment } from '#lib/disclosure/payment.ts'
import { disclosePayments } from '#lib/disclosure/payment-disclosure.ts'
import { type DisclosureRequest, parseRequest } from '#lib/disclosure/request.ts'
import { readAccountAuth } from '#lib/stellar/account.ts'
import { openHolder } from '#lib/wallet/keys.ts'
import { keypairSigner } from '#lib/wallet/signer.ts'
import { printMessage } from '../process/output.ts'
import { describeQuestion, systemRandom } from './disclosure.ts'
import { readForeignFile } from './foreign-file.ts'
import type { ClientNetwork } from './participants.ts'

type SenderRequest = Exclude<DisclosureRequest, { statement: 'balance' }>

/** The owner's signature that lets a channel disclose the payments that it made from the owner's delegation. */
export async function authorize(
  network: ClientNetwork,
  owner: Keypair,
  given: { request: string; hashes: readonly string[]; spender: string },
): Promise<string> {
  const content = await readForeignFile(given.request)
  const request = requireSenderRequest(content, network)
  if (request.account !== owner.publicKey()) {
    throw new DisclosureError('other-keys', `only ${request.account} can authorize this disclosure`)
  }
  const source = openLedgerSource(network.rpc, network.token, network.archives)
  const payments = await findDelegated(source, request, given.hashes, given.spender)
  return await authorizeDisclosure(keypairSigner(owner), {
    passphrase: network.passphrase,
    account: request.account,
    channel: given.spender,
    request: content,
    payments,
  })
}

/** Discloses payments of a channel, after checking the owner's signature. Prints no amount. */
export async function discloseForOwner(
  network: ClientNetwork,
  channels: readonly Keypair[],
  given: { request: string; hashes: readonly string[]; signature: string; out: string },
): Promise<string> {
  const content = await readForeignFile(given.request)
  const request = requireSenderRequest(content, network)
  const source = openLedgerSource(network.rpc, network.token, network.archives)
  const channel = await findChannel(source, request, given.hashes[0], channels)
  const payments = await findDelegated(source, request, given.hashes, channel.publicKey())
  const owner = await readAccountAuth(network.rpc, request.account)
  const { passphrase } = network
  const authorization = {
    passphrase,
    account: request.account,
    channel: channel.publicKey(),
    request: content,
    payments,
  }
  requireAuthorization(
    authorization,
    given.signature,
    owner.exists ? owner : { signers: [], thresholds: { medium: 1 } },
  )
  const { PROVER_CRS: referenceString, PROVER_THREADS: threads } = environment()
  const prover = await openDisclosureProver(passphrase, { referenceString, threads }, printMessage)
  try {
    const context = { source, prover, random: systemRandom }
    const { bundles } = await disclosePayments(context, request, openHolder(channel, network.token), payments)
    await writeFile(given.out, encodeBundles(bundles))
    return `${given.out} discloses ${describeQuestion(request)}`
  } finally {
    await prover.destroy()
  }
}

function requireSenderRequest(content: string, network: ClientNetwork): SenderRequest {
  const request = parseRequest(content)
  if (request.network !== network.passphrase || request.token !== network.token) {
    throw new DisclosureError('other-network', 'the request is about another network or another token: see --network')
  }
  if (request.statement !== 'balance' && request.role === 'sender') return request
  throw new DisclosureError('not-authorized', 'a channel discloses payments that its owner has sent: --role sender')
}

async function findDelegated(
  source: DisclosureSource,
  request: SenderRequest,
  hashes: readonly string[],
  spender: string,
): Promise<Payment[]> {
  const payments: Payment[] = []
  for (const hash of new Set(hashes)) {
    const found = (await readPayments(source, request, hash)).filter((payment) => payment.spender === spender)
    if (found.length === 0) {
      throw new DisclosureError(
        'other-account',
        `${spender} has paid nothing of ${request.account} in transaction ${hash}`,
      )
    }
    payments.push(...found)
  }
  return payments
}

/** The relay's channel that made a payment. */
async function findChannel(
  source: DisclosureSource,
  request: SenderRequest,
  hash: string | undefined,
  channels: readonly Keypair[],
): Promise<Keypair> {
  const [payment] = hash === undefined ? [] : await readPayments(source, request, hash)
  const channel = channels.find((each) => each.publicKey() === payment?.spender)
  if (channel) return channel
  throw new DisclosureError(
    'other-keys',
    `no channel of this relay has paid transaction ${hash} for ${request.account}`,
  )
}

async function readPayments(source: DisclosureSource, request: SenderRequest, hash: string): Promise<Payment[]> {
  const events = (await source.readTransaction(hash)).filter(({ topics, data }) => decodePayment(topics, data))
  return events.map((event) => readPayment(event, request.token)).filter(({ from }) => from === request.account)
}
