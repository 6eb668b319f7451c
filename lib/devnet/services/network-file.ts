import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dataPath } from '#lib/config/data-directory.ts'
import type { Deployment } from '../apply/genesis.ts'

/** The network in a directory. */
interface NetworkFile {
  readonly passphrase: string
  readonly deployment: Deployment
  /** the version of the directory's content; before release 1.0.0 it was a digest, or missing */
  readonly version: number
}

export function readNetworkFile(directory: string): NetworkFile | undefined {
  const path = dataPath(directory, 'network.json')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
}

/** Synced before the first ledger is stored, since ledgers without this file couldn't be opened. */
export function writeNetworkFile(directory: string, network: NetworkFile): void {
  mkdirSync(directory, { recursive: true })
  const path = dataPath(directory, 'network.json')
  const file = openSync(`${path}.part`, 'w')
  try {
    writeSync(file, `${JSON.stringify(network, null, 2)}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(`${path}.part`, path)
}

/**
 * The auditor's secret, for `npm run auditor`. It can be derived again from the passphrase, so it need not be synced.
 */
export function writeAuditorFile(directory: string, secret: bigint): void {
  const content = `${JSON.stringify({ secret: secret.toString(16).padStart(64, '0') })}\n`
  writeFileSync(dataPath(directory, 'auditor.json'), content, { mode: 0o600 })
}
