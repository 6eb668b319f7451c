import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { Keypair } from '@stellar/stellar-sdk'
import { decodeBase64, encodeBase64 } from '#lib/text/base64.ts'
import { type Signer, signatureOf } from './signer.ts'
import { WalletError } from './wallet-error.ts'

/** An escrow that pays payouts of a run: the relay's channel (G…), and the ledger through which it may pay. */
export interface ManifestDelegation {
  channel: string
  liveUntilLedger: number
}

/** A payout of a run: who receives it, and which channel pays the amount that the seal hides. */
export interface ManifestPayout {
  payout: string
  contractor: string
  /** G… or C… */
  address: string
  channel: string
  /** SHA-256 of `encryptedAmount`, 64 hex digits */
  sealHash: string
}

/** Everything that an employer signs when it starts a run. */
export interface Manifest {
  passphrase: string
  /** C… */
  token: string
  batch: string
  /** the employer's account, G… */
  account: string
  delegations: readonly ManifestDelegation[]
  payouts: readonly ManifestPayout[]
}

const VERSION = 'confidential-payroll-run/1'

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const STRKEY = '[A-Z2-7]{56}'
const DELEGATION = new RegExp(`^delegation (${STRKEY}) ([1-9][0-9]{0,9}|0)$`)
const PAYOUT = new RegExp(`^payout (${UUID}) (${UUID}) (${STRKEY}) (${STRKEY}) ([0-9a-f]{64})$`)
const BATCH = new RegExp(`^${UUID}$`)

/**
 * The manifest's text, which client and service build independently: five lines that say where the run takes place, a
 * line for each channel in the order of addresses, and a line for each payout in the order of ids. Each line ends with LF.
 */
export function formatManifest({ passphrase, token, batch, account, delegations, payouts }: Manifest): string {
  const lines = [
    VERSION,
    passphrase,
    token,
    batch,
    account,
    ...sortBy(delegations, ({ channel }) => channel).map(
      ({ channel, liveUntilLedger }) => `delegation ${channel} ${liveUntilLedger}`,
    ),
    ...sortBy(payouts, ({ payout }) => payout).map(
      ({ payout, contractor, address, channel, sealHash }) =>
        `payout ${payout} ${contractor} ${address} ${channel} ${sealHash}`,
    ),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

/** Reads a stored manifest. Undefined for any text that `formatManifest` doesn't write. */
export function parseManifest(text: string): Manifest | undefined {
  const [version, passphrase = '', token = '', batch = '', account = '', ...lines] = text.split('\n')
  const delegations: ManifestDelegation[] = []
  const payouts: ManifestPayout[] = []
  for (const line of lines) {
    const [, channel, liveUntilLedger] = DELEGATION.exec(line) ?? []
    if (channel !== undefined) delegations.push({ channel, liveUntilLedger: Number(liveUntilLedger) })
    const [, payout = '', contractor = '', address = '', payer = '', sealHash = ''] = PAYOUT.exec(line) ?? []
    if (payout !== '') payouts.push({ payout, contractor, address, channel: payer, sealHash })
  }
  const manifest = { passphrase, token, batch, account, delegations, payouts }
  const isUnique = new Set([...delegations.map(({ channel }) => channel), ...payouts.map(({ payout }) => payout)])
  if (version !== VERSION || isUnique.size < delegations.length + payouts.length) return undefined
  return formatManifest(manifest) === text ? manifest : undefined
}

/** The hash by which a manifest names a sealed amount, 64 hex digits. */
export const hashSeal = (encryptedAmount: string): string => hashText(encryptedAmount)

/**
 * The message that starts a run. A wallet signs it as it is (SEP-53), so it must not be taken for another message:
 * batch and passphrase may come from a response.
 * @throws WalletError `malformed` for a batch that isn't a UUID, or a passphrase of several lines
 */
export function runMessage(manifest: Manifest): string {
  const { batch, passphrase, payouts } = manifest
  if (!BATCH.test(batch)) throw new WalletError('malformed', 'the id of the batch is not a UUID')
  if (/\p{Cc}/u.test(passphrase)) throw new WalletError('malformed', 'the network passphrase is not one line of text')
  const hash = hashText(formatManifest(manifest))
  return `Run batch ${batch} on ${passphrase}: ${payouts.length} payouts, manifest ${hash}`
}

/** The signature that starts a run, base64. Throws like `runMessage`. */
export async function signManifest(signer: Signer, manifest: Manifest): Promise<string> {
  return encodeBase64(await signatureOf(signer, runMessage(manifest)))
}

/** A signer that may or may not authorize payments of an account: the weight of its signature decides. */
interface WeightedSigner {
  /** G… */
  key: string
  weight: number
}

/** Signers of an account with their weights, and the weight that a payment needs. */
export interface AuthorizedSigners {
  signers: readonly WeightedSigner[]
  thresholds: { medium: number }
}

/** The signers of the account who have signed the manifest, each once, with the signatures (base64) that verify. */
export function signaturesOn(
  manifest: Manifest,
  signatures: readonly string[],
  { signers }: Pick<AuthorizedSigners, 'signers'>,
): (WeightedSigner & { signature: string })[] {
  const message = runMessage(manifest)
  const given = signatures.map((signature) => ({ signature, bytes: decodeBase64(signature) }))
  return signers.flatMap((signer) => {
    const key = Keypair.fromPublicKey(signer.key)
    const own = given.find(({ bytes }) => bytes?.length === 64 && key.verifyMessage(message, bytes))
    return own ? [{ ...signer, signature: own.signature }] : []
  })
}

/** The sum of the weights of signers. */
export const weightOf = (signers: readonly WeightedSigner[]): number =>
  signers.reduce((sum, { weight }) => sum + weight, 0)

/**
 * Whether the signatures (base64) are those of signers of the account whose weights together reach the medium threshold, which is
 * what the ledger asks of a payment. At least one is needed.
 */
export function isSignedManifest(
  manifest: Manifest,
  signatures: readonly string[],
  account: AuthorizedSigners,
): boolean {
  const signed = signaturesOn(manifest, signatures, account)
  return signed.length > 0 && weightOf(signed) >= account.thresholds.medium
}

/** The signatures of a run as they are stored: one text, so that a host of version 1.0.0 reads a single one. */
export const formatSignatures = (signatures: readonly string[]): string => signatures.join(' ')
/** At most as many as an account can have signers: each is verified with every signer. */
export const parseSignatures = (stored: string): string[] => stored.split(' ').slice(0, MAX_SIGNERS)

/** 20, and the account's own key. */
const MAX_SIGNERS = 21

/** What differs between two manifests of a batch: a payout or a channel, and how. */
export type ManifestChange = {
  payoutId?: string
  channel?: string
  reason: (typeof MANIFEST_CHANGES)[number]
}

export const MANIFEST_CHANGES = [
  'account-changed',
  'delegation-changed',
  'payout-added',
  'payout-removed',
  'address-changed',
  'channel-changed',
  'seal-changed',
] as const

/** How a manifest differs from an earlier one of the same batch; empty if it does not. */
export function changesBetween(before: Manifest, now: Manifest): ManifestChange[] {
  if (before.account !== now.account || before.token !== now.token || before.passphrase !== now.passphrase)
    return [{ reason: 'account-changed' }]
  const escrows = ({ delegations }: Manifest) => new Map(delegations.map((one) => [one.channel, one.liveUntilLedger]))
  const [oldEscrows, newEscrows] = [escrows(before), escrows(now)]
  const channels = [...new Set([...oldEscrows.keys(), ...newEscrows.keys()])]
  const changed = channels.filter((channel) => oldEscrows.get(channel) !== newEscrows.get(channel))
  const byId = ({ payouts }: Manifest) => new Map(payouts.map((one) => [one.payout, one]))
  const [old, present] = [byId(before), byId(now)]
  const ids = [...new Set([...old.keys(), ...present.keys()])]
  return [
    ...changed.map((channel) => ({ channel, reason: 'delegation-changed' as const })),
    ...ids.flatMap((payoutId) => {
      const reason = changeOf(old.get(payoutId), present.get(payoutId))
      return reason ? [{ payoutId, reason }] : []
    }),
  ]
}

function changeOf(
  before: ManifestPayout | undefined,
  now: ManifestPayout | undefined,
): ManifestChange['reason'] | undefined {
  if (!before) return 'payout-added'
  if (!now) return 'payout-removed'
  if (before.address !== now.address || before.contractor !== now.contractor) return 'address-changed'
  if (before.channel !== now.channel) return 'channel-changed'
  return before.sealHash === now.sealHash ? undefined : 'seal-changed'
}

/** Whether a signer whose weight alone reaches the medium threshold has signed `message` (SEP-53, base64). */
export function isSignedBy(message: string, signature: string, account: AuthorizedSigners): boolean {
  const bytes = decodeBase64(signature)
  if (bytes?.length !== 64) return false
  return account.signers.some(
    ({ key, weight }) =>
      weight >= account.thresholds.medium && Keypair.fromPublicKey(key).verifyMessage(message, bytes),
  )
}

/** SHA-256 of the text in UTF-8, in hex. */
export const hashText = (text: string): string => bytesToHex(sha256(utf8ToBytes(text)))

function sortBy<Row>(rows: readonly Row[], key: (row: Row) => string): Row[] {
  return rows.toSorted((left, right) => (key(left) < key(right) ? -1 : 1))
}
