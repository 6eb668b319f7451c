import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { dataPath } from '#lib/config/data-directory.ts'
import { answerPrepared, type Prepared, prepare } from '#lib/http/prepared.ts'

interface PackedSdk {
  /** /sdk/<digest>/<name>: the path changes with every byte, since npm caches a tarball by its address. */
  path: string
  tarball: Prepared
}

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
  return { path: `/sdk/${digest}/${name}`, tarball: prepare(bytes, 'application/gzip') }
}

/** A redirect to the package of this service's version, so that `npm i https://…/sdk` installs it. */
export async function redirectToSdk(): Promise<Response | undefined> {
  const sdk = await loadSdk()
  return sdk && new Response(null, { status: 302, headers: { Location: sdk.path } })
}

/** The tarball; undefined for the path of another version. */
export async function sdkFile(request: Request): Promise<Response | undefined> {
  const sdk = await loadSdk()
  if (!sdk || new URL(request.url).pathname !== sdk.path) return undefined
  return await answerPrepared(request, sdk.tarball, { 'Cache-Control': 'public, max-age=31536000, immutable' })
}
