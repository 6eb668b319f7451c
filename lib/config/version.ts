import { spawnSync } from 'node:child_process'
import manifest from '#package.json' with { type: 'json' }

/** What runs: a release, and the commit from which it was built. */
export interface Version {
  /** of package.json, such as `1.0.0` */
  version: string
  /** 40 hex digits, with `-dirty` after them if files had changed since; undefined if neither Git nor the build named one */
  commit: string | undefined
}

let read: Version | undefined

/**
 * The version of this process. A Next build contains its commit (next.config.ts). Programs that run from the sources, such as
 * relays, take it from COMMIT or the repository.
 */
export function readVersion(): Version {
  read ??= { version: manifest.version, commit: process.env.COMMIT || process.env.VERCEL_GIT_COMMIT_SHA || askGit() }
  return read
}

/** `1.0.0 (0123abcd)` */
export const nameVersion = ({ version, commit } = readVersion()): string =>
  commit === undefined ? version : `${version} (${commit.slice(0, 8)})`

/** Not the repository of a folder above, into which the sources were unpacked. */
const here = () => ({ ...process.env, GIT_CEILING_DIRECTORIES: process.cwd().replace(/[/\\][^/\\]*$/, '') })

function askGit(): string | undefined {
  const { stdout, status } = spawnSync('git', ['describe', '--always', '--dirty', '--abbrev=40', '--exclude=*'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: here(),
  })
  return status === 0 ? stdout.trim() : undefined
}
