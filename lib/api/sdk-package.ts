import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { dataPath } from '#lib/config/data-directory.ts'
import { readVersion } from '#lib/config/version.ts'
import { answerPrepared, type Prepared, prepare } from '#lib/http/prepared.ts'
import { Refusal } from '#lib/refusal/refusal.ts'

const FILE = 'confidential-payroll-sdk.tgz'

interface PackedSdk {
  /** /sdk/<version>-<digest>/confidential-payroll-sdk.tgz: it changes with every byte, since a lock file has the digest. */
  path: string
  tarball: Prepared
}

const OF_A_VERSION = /^\/sdk\/\d+\.\d+\.\d+[\w.-]*-[0-9a-f]{16}\/confidential-payroll-sdk\.tgz$/

let loading: Promise<PackedSdk | undefined> | undefined

/** The tarball packed by the build, read once; undefined for a build without one. */
function loadSdk(): Promise<PackedSdk | undefined> {
  loading ??= readSdk()
  return loading
}

async function readSdk(): Promise<PackedSdk | undefined> {
  const folder = dataPath(process.cwd(), 'lib/sdk/dist')
  const name = (await readdir(folder).catch(() => [])).find((file) => file.endsWith('.tgz'))
  if (name === undefined) return undefined
  const bytes = await readFile(dataPath(folder, name))
  const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 16)
  return { path: `/sdk/${readVersion().version}-${digest}/${FILE}`, tarball: prepare(bytes, 'application/gzip') }
}

/** A redirect to the package of this service's version, so that `npm i https://…/sdk` installs it. */
export async function redirectToSdk(): Promise<Response | undefined> {
  const sdk = await loadSdk()
  return sdk && new Response(null, { status: 302, headers: { Location: sdk.path } })
}

/**
 * The tarball; undefined for a path that no version has.
 * @throws Refusal `package-gone` for the path of another version
 */
export async function sdkFile(request: Request): Promise<Response | undefined> {
  const sdk = await loadSdk()
  const { pathname } = new URL(request.url)
  if (!sdk || !OF_A_VERSION.test(pathname)) return undefined
  if (pathname !== sdk.path) {
    throw new Refusal('package-gone', `this service has another version of the package now: ${sdk.path}`, {
      details: { path: sdk.path },
    })
  }
  return await answerPrepared(request, sdk.tarball, { 'Cache-Control': 'public, max-age=31536000, immutable' })
}
