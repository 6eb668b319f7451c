import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'

/** A place in a chunk of the build, as a stack trace names it. */
const CHUNK_PLACE = /(?:file:\/\/)?(\/\S*?\/\.next\/(?:dev\/)?server\/\S*?\.js):(\d+):(\d+)/g

/** The maps of the chunks in which errors have occurred. Node's own option would keep those of all chunks in memory. */
const maps = new Map<string, SourceMap | undefined>()

/** Replaces places in chunks of the build by those in the source files: `lib/transfers/record.ts:57:11`. */
export function mapStack(stack: string): string {
  return stack.replaceAll(CHUNK_PLACE, (place, chunk: string, line: string, column: string) => {
    const { originalSource, originalLine, originalColumn } = {
      ...mapOf(chunk)?.findEntry(Number(line) - 1, Number(column) - 1),
    } as Partial<{ originalSource: string; originalLine: number; originalColumn: number }>
    if (originalSource === undefined || originalLine === undefined || originalColumn === undefined) return place
    const file = decodeURI(originalSource).replace(/^(?:.*\[project\]\/|(?:\.\.\/)+)/, '')
    return `${file}:${originalLine + 1}:${originalColumn + 1}`
  })
}

function mapOf(chunk: string): SourceMap | undefined {
  if (!maps.has(chunk)) maps.set(chunk, readMap(`${chunk}.map`))
  return maps.get(chunk)
}

/** An image or a function may lack the maps. */
function readMap(file: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(/* turbopackIgnore: true */ file, 'utf8')))
  } catch {
    return undefined
  }
}
