import { closeSync, existsSync, fsyncSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { PGlite } from '@electric-sql/pglite'
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm'
import { NodeFS } from '@electric-sql/pglite/nodefs'
import { dataPath, OtherVersion } from '#lib/config/data-directory.ts'

/** An open file or folder in Emscripten: `nfd` is Node's descriptor, which a folder lacks. */
interface Stream {
  readonly nfd?: number
  readonly node: object
}

/** The part of Emscripten's NODEFS that this file uses. It has no `fsync`: a sync would do nothing. */
interface NodeFiles {
  readonly stream_ops: { fsync?: (stream: Stream) => number }
  readonly realPath: (node: object) => string
}

/** PGlite's files in a folder, where PostgreSQL's fsync reaches the disk. */
class DurableFiles extends NodeFS {
  override async init(...[client, options]: Parameters<NodeFS['init']>) {
    const { emscriptenOpts } = await super.init(client, options)
    const preRun = [emscriptenOpts.preRun ?? []].flat()
    const addFsync = ({ NODEFS }: { readonly NODEFS: NodeFiles }) => {
      NODEFS.stream_ops.fsync = ({ nfd, node }) => {
        if (nfd !== undefined) fsyncSync(nfd)
        else syncPath(NODEFS.realPath(node))
        return 0
      }
    }
    return { emscriptenOpts: { ...emscriptenOpts, preRun: [...preRun, addFsync] } }
  }
}

function syncPath(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/**
 * Syncs a folder with everything in it: PGlite's initdb, and a copy of a template, leave syncing to the operating
 * system.
 */
export function syncFolder(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) syncFolder(path)
    else syncPath(path)
  }
  syncPath(folder)
}

/**
 * PGlite's default parameters without -F, which turns fsync off. Emscripten's fdatasync, PostgreSQL's default, does
 * nothing.
 */
const START_PARAMETERS = [
  ...PGlite.defaultStartParams.filter((parameter) => parameter !== '-F'),
  '-c',
  'wal_sync_method=fsync',
]

/** The extensions that the migrations create. PostgreSQL has them on disk, and PGlite in its package. */
export const EXTENSIONS = { pg_trgm }

/** The major version of the PostgreSQL in PGlite. It cannot read the folder of another one. */
export const POSTGRES_MAJOR = '18'

/**
 * Opens PGlite in a folder so that a commit survives a power cut. By default PGlite leaves flushing to the operating
 * system.
 * @throws OtherVersion for a folder of another major version of PostgreSQL, which PGlite would fail to open without a reason
 */
export async function openDurablePglite(directory: string): Promise<PGlite> {
  const file = dataPath(directory, 'PG_VERSION')
  const major = existsSync(file) ? readFileSync(file, 'utf8').trim() : POSTGRES_MAJOR
  if (major !== POSTGRES_MAJOR) {
    throw new OtherVersion(
      `PostgreSQL ${major} wrote the database in ${directory}, and this version of the service embeds PostgreSQL ` +
        `${POSTGRES_MAJOR}: start the version that wrote it, or name another folder (DATA_DIR)`,
    )
  }
  return await PGlite.create({ fs: new DurableFiles(directory), startParams: START_PARAMETERS, extensions: EXTENSIONS })
}
