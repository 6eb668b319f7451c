import { setTimeout } from 'node:timers/promises'
import { Keypair, TransactionBuilder } from '@stellar/stellar-sdk'
import { requireSameKeys } from '#lib/prover/node/network-keys.ts'
import { prover as standIn } from '#lib/prover/stand-in.ts'
import { readSource } from '#lib/setup/document.ts'
import { requestFriendbot } from '#lib/stellar/friendbot.ts'
import { reachLedger } from '#lib/stellar/ledger-error.ts'
import type { TokenArchive } from '#lib/wallet/archive.ts'
import { EMPTY } from '#lib/wallet/balance.ts'
import { buildDeposit, buildMerge, buildRegister } from '#lib/wallet/calls.ts'
import type { Opening } from '#lib/wallet/commitment.ts'
import { type Deployment, openDeployment, parseDeployment, type RelayDocument } from '#lib/wallet/deployment.ts'
import { type Holder, openHolder } from '#lib/wallet/keys.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import type { SubmitCall } from '#lib/wallet/transaction.ts'

/** A network with a confidential token, as its deployment document describes it. */
export interface ClientNetwork extends Deployment {
  /** of a test network */
  friendbotUrl?: string | undefined
  /** the code of the token's asset */
  asset?: string | undefined
  auditorId: number
  archives: readonly TokenArchive[]
  /** the relay that the document names */
  relay?: RelayDocument | undefined
}

/** A network whose friendbot creates accounts. */
export interface TestNetwork extends ClientNetwork {
  friendbotUrl: string
}

/** The deployment document at `source`, a file or an http(s) URL. */
export async function readDeployment(source: string) {
  return parseDeployment(source, await readSource(source))
}

/**
 * Opens the network of the deployment document at `source`, a file or an http(s) URL, with the document's archive.
 * @param archiveUrls replaces that archive
 * @throws ConfigurationError before anything is created there, if its verifier wouldn't accept this prover's proofs
 */
export async function openNetwork(
  source: string,
  prover?: Prover,
  archiveUrls?: readonly string[],
): Promise<ClientNetwork> {
  const document = await readDeployment(source)
  const { friendbotUrl, relay, asset } = document
  const deployment = openDeployment(document, prover ?? standIn, archiveUrls)
  const network: ClientNetwork = {
    ...deployment,
    friendbotUrl,
    asset: asset?.code,
    auditorId: document.auditor.id,
    relay,
  }
  if (prover) await requireSameKeys(network, document.contracts.verifier, prover)
  return network
}

/** Opens a network like `openNetwork`, whose document names a friendbot. */
export async function openTestNetwork(...given: Parameters<typeof openNetwork>): Promise<TestNetwork> {
  return requireFriendbot(await openNetwork(...given))
}

export function requireFriendbot(network: ClientNetwork): TestNetwork {
  const { friendbotUrl } = network
  if (friendbotUrl === undefined)
    throw new Error('the deployment document lacks friendbotUrl: no account can be created')
  return { ...network, friendbotUrl }
}

/** The network rejected a transaction, so it will never be applied. */
class NotTaken extends Error {
  constructor(status: string) {
    super(`the network responded with ${status}`)
    this.name = 'NotTaken'
  }
}

/** How many times, and how many milliseconds apart, a deposit is rebuilt: the faucet may be using the same account. */
const TURNS = 60
const TURN_MS = 250

/** Submits a signed transaction, paid by its source account, and waits until a ledger includes it. */
export async function sendAndWait(network: ClientNetwork, signedXdr: string): Promise<void> {
  const transaction = TransactionBuilder.fromXdr(signedXdr, network.passphrase)
  const sent = await reachLedger(network.rpc.sendTransaction(transaction))
  // An earlier attempt may have reached the network.
  if (sent.status !== 'PENDING' && sent.status !== 'DUPLICATE') throw new NotTaken(sent.status)
  const result = await reachLedger(network.rpc.pollTransaction(sent.hash, { attempts: 200, sleepStrategy: () => 100 }))
  if (result.status !== 'SUCCESS') {
    const why = result.status === 'FAILED' ? JSON.stringify(result.resultXdr.toJson()) : 'not in time'
    throw new Error(`transaction ${sent.hash} did not succeed: ${why}`)
  }
}

/**
 * A new account with XLM from friendbot, registered with the confidential token.
 * @param submit submits the registration, by default at the account's own cost
 */
export async function enrol(
  network: TestNetwork,
  signer = Keypair.random(),
  submit: SubmitCall = (signedXdr) => sendAndWait(network, signedXdr),
): Promise<Holder> {
  await requestFriendbot(network.friendbotUrl, signer.publicKey())
  return await registerHolder(network, signer, submit)
}

/** Registers an existing account with the confidential token. */
export async function registerHolder(network: ClientNetwork, signer: Keypair, submit: SubmitCall): Promise<Holder> {
  const holder = openHolder(signer, network.token)
  const { signedXdr } = await buildRegister(network, holder, { auditorId: network.auditorId })
  await submit(signedXdr)
  return holder
}

/**
 * Gives `holder` a confidential balance of `amount` (base units): a deposit signed by the asset's issuer, then a merge,
 * which makes it spendable. Resolves to the opening of that balance.
 * @param submit submits the merge, by default at the holder's own cost
 */
export async function endow(
  network: ClientNetwork,
  issuer: Keypair,
  holder: Holder,
  amount: bigint,
  submit: SubmitCall = (signedXdr) => sendAndWait(network, signedXdr),
): Promise<Opening> {
  for (let turn = 1; ; turn += 1) {
    const deposit = await buildDeposit(network, issuer, { to: holder.address, amount })
    const refusal = await sendAndWait(network, deposit.signedXdr).catch((error: unknown) => error)
    if (refusal === undefined) break
    if (!(refusal instanceof NotTaken) || turn === TURNS) throw refusal
    await setTimeout(TURN_MS)
  }
  const received = { spendable: EMPTY.spendable, receiving: { value: amount, blinding: 0n } }
  const merge = await buildMerge(network, holder.signer, received)
  await submit(merge.signedXdr)
  if (!merge.next) throw new Error('the merge does not open the balance')
  return merge.next
}
