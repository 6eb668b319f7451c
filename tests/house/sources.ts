import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Rule {
  name: string
  /** Returns one line per violation. */
  violations(): string[] | Promise<string[]>
}

/** The sources of the application, by path, without generated `.d.ts` files. */
export const sources = readSources(['{app,lib,drizzle}/**/*.{ts,tsx}', 'instrumentation.ts', 'proxy.ts'])
export const files = [...sources.keys()]

/** The sources of the tests, by path. */
export const testSources = readSources(['tests/**/*.{ts,tsx}'])

function readSources(patterns: string[]): Map<string, string> {
  return new Map(
    globSync(patterns)
      .filter((file) => !file.endsWith('.d.ts'))
      .sort()
      .map((file) => [file, readFileSync(file, 'utf8')]),
  )
}

export interface Import {
  from: string
  specifier: string
  /** the file of this project that is imported; undefined for a package */
  file: string | undefined
  typeOnly: boolean
}

const STATEMENT =
  /^(?:import|export)\s(type\s)?[^'"`;]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm

/** Every import in these files. */
export function importsIn(read: ReadonlyMap<string, string>): Import[] {
  return [...read].flatMap(([from, source]) =>
    [...source.matchAll(STATEMENT)].map(([, type, bindings, bare, dynamic]) => {
      const specifier = bindings ?? bare ?? dynamic ?? ''
      return { from, specifier, file: resolve(from, specifier), typeOnly: type !== undefined }
    }),
  )
}

function resolve(from: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return join(dirname(from), specifier)
  return specifier.startsWith('#') ? specifier.slice(1) : undefined
}
