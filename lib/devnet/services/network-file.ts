import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dataPath } from '#lib/config/data-directory.ts'
import type { Deployment } from '../apply/genesis.ts'

/** The network whose ledgers are in a directory. */
interface NetworkFile {
  readonly passphrase: string
  readonly deployment: Deployment
}

export function readNetworkFile(directory: string): NetworkFile | undefined {
  const path = dataPath(directory, 'network.json')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
}

/** The file is written before the first ledger: ledgers without it could not be opened. */
export function writeNetworkFile(directory: string, network: NetworkFile): void {
  mkdirSync(directory, { recursive: true })
  const path = dataPath(directory, 'network.json')
  writeFileSync(`${path}.part`, `${JSON.stringify(network, null, 2)}\n`)
  renameSync(`${path}.part`, path)
}
