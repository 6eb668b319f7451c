import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { dataPath } from '#lib/config/data-directory.ts'
import { answerPrepared, type Prepared, prepare } from '#lib/http/prepared.ts'

const SCRIPT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'

/**
 * The viewer's files: those of Swagger UI, and the ones that adapt it. The build includes them (next.config.ts). The
 * large ones are compressed once. Next takes Content-Encoding only from its configuration, which lists the same files.
 */
const FILES = [
  { name: 'swagger-ui.css', path: 'node_modules/swagger-ui-dist/swagger-ui.css', type: STYLE, compressed: true },
  {
    name: 'swagger-ui-bundle.js',
    path: 'node_modules/swagger-ui-dist/swagger-ui-bundle.js',
    type: SCRIPT,
    compressed: true,
  },
  { name: 'viewer.css', path: 'lib/api/viewer/viewer.css', type: STYLE, compressed: false },
  { name: 'viewer.js', path: 'lib/api/viewer/viewer.js', type: SCRIPT, compressed: false },
  { name: 'test-session.js', path: 'lib/api/viewer/test-session.js', type: SCRIPT, compressed: false },
]

interface Viewer {
  /** changes with every byte of the files */
  version: string
  files: Map<string, Prepared>
}

let loading: Promise<Viewer> | undefined

/** The files of the viewer, read once. */
export function loadViewer(): Promise<Viewer> {
  loading ??= readViewer()
  return loading
}

async function readViewer(): Promise<Viewer> {
  const entries = FILES.map(async ({ name, path, type, compressed }) => {
    // If the build could trace this path, it would bundle the whole project into the functions of /docs.
    const bytes = await readFile(dataPath(process.cwd(), path))
    return [name, prepare(compressed ? gzipSync(bytes) : bytes, type)] as const
  })
  const files = new Map(await Promise.all(entries))
  const digest = createHash('sha256')
  for (const { etag } of files.values()) digest.update(etag)
  return { version: digest.digest('hex').slice(0, 16), files }
}

/** A file of the viewer, or a redirect to its current version; undefined for an unknown name. */
export async function viewerFile(request: Request, version: string, name: string): Promise<Response | undefined> {
  const viewer = await loadViewer()
  const file = viewer.files.get(name)
  if (!file) return undefined
  if (version !== viewer.version) {
    return new Response(null, { status: 307, headers: { Location: `/docs/${viewer.version}/${name}` } })
  }
  return answerPrepared(request, file, { 'Cache-Control': 'public, max-age=31536000, immutable' })
}
