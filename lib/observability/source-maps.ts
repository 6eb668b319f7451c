import { readFileSync, statSync } from 'node:fs'
import { SourceMap } from 'node:module'

/** A frame of a stack trace. The message above the frames may be long, and anybody's text. */
const FRAME = /^ {4}at .{1,1000}$/gm

/** A place in a chunk of the build, at the end of a frame. */
const CHUNK_PLACE = /(?:file:\/\/)?(\/[^\s:]+\.js):(\d+):(\d+)(?=\)?$)/
const IN_BUILD = /\/\.next\/(?:dev\/)?server\//

/** A map takes up to 50 MB and half a second, so it is dropped, and the places found in it are kept. */
const found = new Map<string, string>()
const MAX_FOUND = 5_000

/** Replaces places in chunks of the build by those in the source files: `lib/transfers/record.ts:57:11`. */
export function mapStack(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>()
  const mapPlace = (place: string, chunk: string, line: string, column: string): string => {
    if (!IN_BUILD.test(chunk)) return place
    // The development server replaces chunks.
    const key = `${place} ${statSync(/* turbopackIgnore: true */ chunk, { throwIfNoEntry: false })?.mtimeMs}`
    const known = found.get(key)
    if (known !== undefined) return known
    if (!maps.has(chunk)) maps.set(chunk, readMap(`${chunk}.map`))
    const source = sourceOf(maps.get(chunk), Number(line), Number(column)) ?? place
    if (found.size >= MAX_FOUND) found.clear()
    found.set(key, source)
    return source
  }
  return stack.replaceAll(FRAME, (frame) => frame.replace(CHUNK_PLACE, mapPlace))
}

function sourceOf(map: SourceMap | undefined, line: number, column: number): string | undefined {
  const entry = map?.findEntry(line - 1, column - 1)
  if (!entry || !('originalSource' in entry)) return undefined
  const file = decodeURI(entry.originalSource).replace(/^(?:.*\[project\]\/|(?:\.\.\/)+)/, '')
  return `${file}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
}

/** An image or a function may lack the maps. */
function readMap(file: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(/* turbopackIgnore: true */ file, 'utf8')))
  } catch {
    return undefined
  }
}
