import { Networks, type rpc, StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { openClientRpc } from '#lib/stellar/rpc-server.ts'
import { parseJson } from '#lib/text/json.ts'
import { type EventArchive, openHttpArchive, type TokenArchive } from './archive.ts'
import type { RandomSource } from './keys.ts'
import type { Prover } from './prover.ts'
import { WalletError } from './wallet-error.ts'

/** A confidential token on a network: enough for calls without a proof, deposit and merge. */
export interface TokenOnNetwork {
  rpc: rpc.Server
  passphrase: string
  /** Contract strkey of the confidential token. */
  token: string
  /** Milliseconds since the epoch, for time bounds; by default the system's clock. */
  now?: () => number
  /** The maximum resource fee of a call, margins included, in stroops; 0.5 XLM by default. */
  maxResourceFee?: bigint
  /** Ends what is being built or read between two of its steps, with the signal's reason. */
  signal?: AbortSignal
}

/**
 * A token with everything that the wallet needs. It is passed to every function, so that one process can work with
 * several.
 */
export interface Deployment extends TokenOnNetwork {
  /** Contract strkey of the registry of auditors that the token was made with. */
  auditor: string
  prover: Prover
  /** The archives with events that the RPC no longer has; none by default. */
  archives?: readonly EventArchive[]
  /** The system's clock by default. */
  random?: RandomSource
}

const coordinate = z.string().regex(/^[\w-]{43}$/)

export const RELAY_DOCUMENT = z.object({
  publicKey: z.object({ kty: z.literal('EC'), crv: z.literal('P-256'), x: coordinate, y: coordinate }),
  channels: z.array(z.string().regex(/^G[A-Z2-7]{55}$/)).min(1),
})

/** The key that a relay opens amounts with, a JWK, and the accounts that it pays from, G… */
export type RelayDocument = z.output<typeof RELAY_DOCUMENT>

/** The parts of a deployment document that setup and wallets check alike. */
export const CONTRACT = z.string().refine((value) => StrKey.isValidContract(value), 'is not a contract address (C…)')
export const HTTP_URL = z
  .string()
  .refine((value) => /^https?:$/.test(URL.parse(value)?.protocol ?? ''), 'is not an http(s) URL')
export const AUDITOR_ID = z.number().int().min(0).max(0xffffffff)

/** Why a document with this network and passphrase is not used, or undefined: this service is for test networks. */
export function networkProblem({ network = '', passphrase }: { network?: string; passphrase: string }) {
  if (passphrase === Networks.PUBLIC || /^(main|pub)/i.test(network)) {
    return 'is for the main network; this service is for test networks'
  }
  return network === 'testnet' && passphrase !== Networks.TESTNET
    ? 'network and passphrase contradict each other'
    : undefined
}

const DOCUMENT = z
  .object({
    network: z.string().optional(),
    rpcUrl: HTTP_URL,
    friendbotUrl: HTTP_URL.optional(),
    passphrase: z.string().min(1),
    asset: z.object({ code: z.string() }).optional(),
    contracts: z.object({ token: CONTRACT, auditor: CONTRACT, verifier: CONTRACT }),
    auditor: z.object({ id: AUDITOR_ID }),
    archiveUrl: HTTP_URL.optional(),
    relay: RELAY_DOCUMENT.optional(),
  })
  .superRefine((document, context) => {
    const problem = networkProblem(document)
    if (problem) context.addIssue(problem)
  })

/** The fields of a deployment document that a wallet reads: the addresses of a network's confidential token. */
export type DeploymentDocument = z.output<typeof DOCUMENT>

/** @throws WalletError `deployment-invalid`; the errors of fetch are passed on */
export async function fetchDeployment(url: string): Promise<DeploymentDocument> {
  const response = await fetch(url)
  if (!response.ok) throw new WalletError('deployment-invalid', `${url} responded ${response.status}`)
  return parseDeployment(url, await response.text())
}

/**
 * Parses the text of the document at `source`, a URL or a file.
 * @throws WalletError `deployment-invalid` that names the fields
 */
export function parseDeployment(source: string, text: string): DeploymentDocument {
  const { data, error } = DOCUMENT.safeParse(parseJson(text))
  if (data) return data
  throw new WalletError('deployment-invalid', `${source} is not a deployment document: ${z.prettifyError(error)}`)
}

/**
 * Opens the deployment of a document, with its archive.
 * @param archiveUrls replaces that archive
 */
export function openDeployment(
  { rpcUrl, passphrase, contracts, archiveUrl }: DeploymentDocument,
  prover: Prover,
  archiveUrls: readonly string[] = archiveUrl === undefined ? [] : [archiveUrl],
): Deployment & { archives: readonly TokenArchive[] } {
  return {
    rpc: openClientRpc(rpcUrl),
    passphrase,
    token: contracts.token,
    auditor: contracts.auditor,
    prover,
    archives: archiveUrls.map((url) => openHttpArchive(url, contracts.token)),
  }
}
