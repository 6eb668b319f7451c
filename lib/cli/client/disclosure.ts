import { chmod, readFile, writeFile } from 'node:fs/promises'
import type { rpc } from '@stellar/stellar-sdk'
import { z } from 'zod'
import { environment } from '#lib/config/environment.ts'
import { parseBundles } from '#lib/disclosure/bundle.ts'
import { openLedgerSource } from '#lib/disclosure/ledger-source.ts'
import { DISCLOSURE_FILES } from '#lib/disclosure/node/files.ts'
import { chooseKeySet } from '#lib/disclosure/node/prover.ts'
import type { ClosedLedger } from '#lib/disclosure/report.ts'
import {
  createRequest,
  type DisclosureRequest,
  drawRequesterKey,
  parseRequest,
  type Question,
  thresholdOf,
} from '#lib/disclosure/request.ts'
import { parseEvidence, verifyRun } from '#lib/disclosure/run-evidence.ts'
import { type Verified, verifyDisclosure } from '#lib/disclosure/verify.ts'
import { openClientRpc } from '#lib/stellar/rpc-server.ts'
import { formatUnits } from '#lib/text/money.ts'
import { openHttpArchive } from '#lib/wallet/archive.ts'
import { decodeField, encodeField } from '#lib/wallet/grumpkin.ts'
import { readForeignFile } from './foreign-file.ts'
import { readDeployment } from './participants.ts'

export const systemRandom = (size: number) => crypto.getRandomValues(new Uint8Array(size))

/** A requester's key file. */
const KEY = z.object({ secret: z.string().regex(/^[0-9a-f]{64}$/) })

/** A requester's secret key, from its file. */
async function readRequesterKey(path: string): Promise<bigint> {
  return decodeField(Buffer.from(KEY.parse(JSON.parse(await readFile(path, 'utf8'))).secret, 'hex'))
}

/** Reads the key from a file that only its owner can read, and creates it if there is none. */
async function readOrDrawKey(path: string): Promise<bigint> {
  const secret = drawRequesterKey(systemRandom)
  const content = `${JSON.stringify({ secret: Buffer.from(encodeField(secret)).toString('hex') })}\n`
  try {
    await writeFile(path, content, { mode: 0o600, flag: 'wx' })
    return secret
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    await chmod(path, 0o600)
    return await readRequesterKey(path)
  }
}

/** Writes a request, and the requester's key if it has none yet. */
export async function writeRequest(question: Question, files: { out: string; key: string }): Promise<string> {
  const request = createRequest(await readOrDrawKey(files.key), question, systemRandom)
  await writeFile(files.out, `${JSON.stringify(request, null, 2)}\n`)
  return `${files.out} asks for ${describeQuestion(request)}; keep ${files.key} to yourself`
}

export function describeQuestion(request: DisclosureRequest): string {
  const threshold = thresholdOf(request)
  const bound = 'atMost' in request && request.atMost !== undefined ? 'at most' : 'at least'
  const boundText = threshold === undefined ? '' : ` of ${bound} ${formatUnits(threshold)}`
  if (request.statement === 'balance') return `the balance${boundText} of ${request.account}`
  const role = `of ${request.account}, disclosed by the ${request.role.replace('-', ' of the ')}`
  if (request.statement === 'payment') return `one payment ${role}`
  return `the total${boundText} from ${request.period.from} to ${request.period.to} ${role}`
}

/** The RPC of a deployment document, the only part of it that a verifier uses. */
async function openRpc(source: string): Promise<rpc.Server> {
  const { rpcUrl } = await readDeployment(source)
  return openClientRpc(rpcUrl)
}

/** Verifies a bundle file for its requester. Reads the RPC and the named archives only. */
export async function verifyFiles(given: {
  request: string
  key: string
  bundle: string
  network: string
  archives: readonly string[]
}): Promise<{ request: DisclosureRequest; verified: Verified }> {
  const request = parseRequest(await readForeignFile(given.request))
  const secret = await readRequesterKey(given.key)
  const bundles = parseBundles(await readForeignFile(given.bundle))
  const archives = given.archives.map((url) => openHttpArchive(url, request.token))
  const source = openLedgerSource(await openRpc(given.network), request.token, archives)
  const keySet = await chooseKeySet(request.network, environment().PROVER_CRS)
  return {
    request,
    verified: await verifyDisclosure({ source, files: DISCLOSURE_FILES, keySet }, { request, secret, bundles }),
  }
}

/** Verifies the evidence of a run. Reads the RPC and the named archives only. */
export async function verifyRunFile(given: {
  evidence: string
  network: string
  archives: readonly string[]
}): Promise<string> {
  const evidence = parseEvidence(await readForeignFile(given.evidence))
  const { contracts } = await readDeployment(given.network)
  const archives = given.archives.map((url) => openHttpArchive(url, contracts.token))
  const source = openLedgerSource(await openRpc(given.network), contracts.token, archives)
  const { manifest, signed, needed, readAt, payments } = await verifyRun(source, evidence)
  const { batch, account, payouts } = manifest
  if (manifest.token !== contracts.token)
    throw new Error('the run is of another token than the deployment document names')
  const weight = signed.reduce((sum, { weight }) => sum + weight, 0)
  return [
    `verified: the run of batch ${batch} from ${account}, ${payments.length} of ${payouts.length} payouts paid`,
    `signed with weight ${weight} of ${needed} by`,
    ...signed.map((signer) => `  ${signer.key} (${signer.weight})`),
    `  signers and weights are the writer's reading of ledger ${readAt}: an account may have had others when the run began`,
    ...payments.map(
      ({ payout, to, closedAt, ledger, transaction, source }) =>
        `${closedAt}  payout ${payout}  to ${to}  ledger ${ledger}  ${transaction}  read from ${source}`,
    ),
    'not compared: amounts, and whether a payment was for this run or for an earlier one through the same channel to the same payee',
  ].join('\n')
}

/** The outcome for people: the value, or the threshold, and a line for each payment. */
export function presentVerified(request: DisclosureRequest, verified: Verified): string {
  const { value, payments, subtotals, asOf, forgeable } = verified
  const threshold = thresholdOf(request)
  const bound = 'atMost' in request && request.atMost !== undefined ? 'at most' : 'at least'
  const amount = value === undefined ? `${bound} ${formatUnits(threshold ?? 0n)}` : formatUnits(value)
  const outcome = forgeable ? 'verified (embedded ledger: anyone can forge this)' : 'verified'
  const lines = payments.map(({ closedAt, from, to, spender, ledger, transaction, source }) => {
    const parties = `from ${from}  to ${to}${from === to ? ' (itself: no income)' : ''}${spender ? `  paid by ${spender}` : ''}`
    return `${closedAt}  ${parties}  ledger ${ledger}  ${transaction}  read from ${source}`
  })
  const parts = subtotals.length > 1 ? [`subtotals ${subtotals.map(formatUnits).join(', ')}`] : []
  const about = [`${describeQuestion(request)}${asOf ? `, ${describeMoment(asOf)}` : ''}`]
  return [`${outcome} ${amount}`, ...about, ...parts, ...lines, ...limitsOf(request)].join('\n')
}

/** The moment of a balance, for a reader who may have expected a later one. */
export const describeMoment = ({ ledger, closedAt }: ClosedLedger): string =>
  `at ledger ${ledger}, which closed at ${closedAt}, or later`

/** What the disclosed value cannot show. */
function limitsOf(request: DisclosureRequest): string[] {
  if (request.statement === 'total') {
    return ['A total does not show whether money went back through other accounts, nor which payments it leaves out.']
  }
  if (request.statement === 'balance' && request.atMost !== undefined) {
    return ['An account may hold more: what it has received and not merged, and what it has escrowed for channels.']
  }
  return []
}

/** The outcome for programs. Amounts are decimals. */
export function presentVerifiedJson(request: DisclosureRequest, verified: Verified): string {
  const { value, payments, subtotals, asOf, forgeable } = verified
  return JSON.stringify({
    verified: true,
    forgeable,
    statement: request.statement,
    account: request.account,
    value: value === undefined ? null : formatUnits(value),
    ...('atLeast' in request && { atLeast: request.atLeast }),
    ...('atMost' in request && { atMost: request.atMost }),
    ...(asOf && { asOf }),
    subtotals: subtotals.map(formatUnits),
    payments: payments.map(({ closedAt, from, to, spender, ledger, transaction, eventIndex, source }) => {
      return { closedAt, from, to, spender: spender ?? null, ledger, transaction, eventIndex, source }
    }),
  })
}

/** A failed step is named by its code. */
export function explainDisclosure(error: unknown): unknown {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string')
    return `${error.code}: ${error.message}`
  return error instanceof Error ? error.message : error
}
