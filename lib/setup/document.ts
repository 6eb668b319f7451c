import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Networks, StrKey } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { ConfigurationError } from '#lib/config/environment.ts'
import { AUDITOR_ID, CONTRACT, HTTP_URL, networkProblem } from '#lib/wallet/deployment.ts'

const account = z.string().refine((value) => StrKey.isValidEd25519PublicKey(value), 'is not an account (G…)')
const url = HTTP_URL.transform((value) => value.replace(/\/+$/, ''))

/** Drops all other fields, in particular the auditor's secret. */
const DOCUMENT = z.object({
  network: z.string().default(''),
  rpcUrl: url,
  passphrase: z.string().min(1),
  asset: z.object({ code: z.string(), issuer: account.nullish(), contract: CONTRACT.optional() }).optional(),
  contracts: z.object({
    token: CONTRACT,
    verifier: CONTRACT.optional(),
    auditor: CONTRACT.optional(),
    underlying: CONTRACT.optional(),
  }),
  auditor: z
    .object({
      id: AUDITOR_ID,
      key: hex(128).optional(),
      keyXHex: hex(64).optional(),
      keyYHex: hex(64).optional(),
    })
    .transform(({ id, key, keyXHex, keyYHex }) => ({
      id,
      key: key ?? (keyXHex && keyYHex ? `${keyXHex}${keyYHex}` : undefined),
    })),
  interface: z.string().optional(),
  bridgeVault: z.union([CONTRACT, account], 'is not an address (G… or C…)').optional(),
})

/** The description of a deployed confidential token. `auditor.key` is 128 hex digits. */
export type DeploymentDocument = Omit<z.output<typeof DOCUMENT>, 'network'> & { network: 'local' | 'testnet' }

const MAX_LENGTH = 100_000

/**
 * Reads the document at `source`, a file or an http(s) URL.
 * @throws ConfigurationError for an unreadable or invalid document
 */
export async function fetchDocument(source: string): Promise<DeploymentDocument> {
  const text = await readSource(source).catch((error: unknown) => {
    throw wrong(`cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  })
  return readDocument(text)
}

/** The text of a file, or at an http(s) URL. */
export async function readSource(source: string): Promise<string> {
  if (!/^https?:\/\//.test(source)) return await readFile(source, 'utf8')
  const response = await fetch(source, { signal: AbortSignal.timeout(30_000) })
  if (!response.ok) throw new Error(`its server responded with ${response.status}`)
  return await response.text()
}

/** What a service adds to a deployment document, for wallets. */
interface OwnFields {
  relay: { publicKey: { x: string; y: string }; channels: readonly string[] }
  /** undefined while the service's address is not known */
  archiveUrl: string | undefined
}

type OwnDocument = Partial<OwnFields>

const readOwn = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as OwnDocument

/** @throws ConfigurationError if the document in `file` names the relay of another service */
export function requireOwnRelay(file: string, { publicKey }: OwnFields['relay']): void {
  const { x, y } = readOwn(file).relay?.publicKey ?? publicKey
  if (x !== publicKey.x || y !== publicKey.y) {
    throw wrong('names the relay of another service: use a copy of the document, or replace it (--replace-relay)')
  }
}

/**
 * Adds the relay to the document in `file`, from which wallets take its key and channels, and the archive if it names none. Keeps
 * everything else.
 */
export function writeOwnFields(file: string, { relay, archiveUrl }: OwnFields): void {
  const document = readOwn(file)
  const fields = { ...document, relay, ...(archiveUrl && { archiveUrl: document.archiveUrl ?? archiveUrl }) }
  const next = `${file}.next`
  writeFileSync(next, `${JSON.stringify(fields, undefined, 2)}\n`, { mode: statSync(file).mode & 0o777 })
  renameSync(next, file)
}

/**
 * Parses a deployment document, and refuses the public network. Pure.
 * @throws ConfigurationError that quotes only the names of fields
 */
export function readDocument(text: string): DeploymentDocument {
  if (text.length > MAX_LENGTH) throw wrong('is too long for a deployment document')
  const parsed = DOCUMENT.safeParse(parseJson(text))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw wrong(`${issue?.path.join('.') || 'the document'}: ${issue?.message ?? 'is invalid'}`)
  }
  const document = parsed.data
  const problem = networkProblem(document)
  if (problem) throw wrong(problem)
  const isTestnet = document.passphrase === Networks.TESTNET
  // An embedded ledger may use testnet's passphrase, but it is still a local network.
  return { ...document, network: isTestnet && document.network !== 'local' ? 'testnet' : 'local' }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text, (key, value: unknown) => (key === 'secretHex' ? undefined : value))
  } catch {
    throw wrong('is not JSON')
  }
}

function hex(digits: number) {
  return z
    .string()
    .regex(new RegExp(`^[0-9a-f]{${digits}}$`, 'i'), `is not ${digits} hex digits`)
    .transform((value) => value.toLowerCase())
}

function wrong(problem: string): ConfigurationError {
  return new ConfigurationError('--deployment', problem)
}
