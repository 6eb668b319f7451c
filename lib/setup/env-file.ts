import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { ConfigurationError } from '#lib/config/environment.ts'

/** Lines of an environment file, under a heading. */
export interface Section {
  heading: string
  variables: Readonly<Record<string, string>>
}

/** Parses an environment file. An empty variable counts as unset. */
export function readVariables(text: string): Record<string, string> {
  const lines = Object.entries(parseEnv(text) as Record<string, string>)
  return Object.fromEntries(lines.filter(([, value]) => value !== ''))
}

/**
 * Adds the missing lines of `sections` to `text`. Keeps existing lines, except that it fills empty ones in place and
 * extends those of `growing`. Pure.
 * @param file for messages
 * @throws ConfigurationError for a variable with another value in the file
 */
export function completeEnv(
  text: string,
  sections: readonly Section[],
  { file, growing }: { file: string; growing: readonly string[] },
): string {
  let whole = text
  for (const { heading, variables } of sections) {
    const existing = readVariables(whole)
    const missing = Object.entries(variables).filter(([name, value]) => {
      const current = existing[name]
      if (current === value) return false
      if (current !== undefined && !(growing.includes(name) && value.startsWith(current))) {
        throw new ConfigurationError(name, `has another value in ${file}: name another file, or remove the line`)
      }
      const line = findLine(whole, name)
      if (line) whole = whole.slice(0, line.start) + format(name, value) + whole.slice(line.end)
      return !line
    })
    if (missing.length === 0) continue
    const lines = [`# ${heading}`, ...missing.map(([name, value]) => format(name, value))]
    whole = `${whole}${whole === '' || whole.endsWith('\n') ? '' : '\n'}${whole === '' ? '' : '\n'}${lines.join('\n')}\n`
  }
  return whole
}

/** Returns the text of `file`, empty if it does not exist. */
export function readEnvFile(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

/** Writes `file` atomically, readable only by its owner. */
export function writeEnvFile(file: string, text: string): void {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) {
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
    return
  }
  const temporaryFile = `${file}.new`
  rmSync(temporaryFile, { force: true })
  writeFileSync(temporaryFile, text, { mode: 0o600, flush: true })
  renameSync(temporaryFile, file)
}

/**
 * Finds the assignment of a variable, without `export` and without a trailing comment. The last of several lines wins.
 */
function findLine(text: string, name: string): { start: number; end: number } | undefined {
  const setting = new RegExp(`^([ \\t]*(?:export[ \\t]+)?)${name}[ \\t]*=.*?(?=[ \\t]+#|$)`, 'gm')
  const line = [...text.matchAll(setting)].at(-1)
  return line && { start: line.index + (line[1] ?? '').length, end: line.index + line[0].length }
}

/** Formats a line that Node, Next and Docker parse alike. */
function format(name: string, value: string): string {
  const line = /^[\w.:/,@-]+$/.test(value) ? `${name}=${value}` : `${name}='${value}'`
  if (readVariables(line)[name] !== value) throw new ConfigurationError(name, 'cannot be written to a file')
  return line
}
