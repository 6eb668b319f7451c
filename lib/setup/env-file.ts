import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { ConfigurationError } from '#lib/config/environment.ts'

/** Lines to have in an environment file, under a heading each. */
export interface Section {
  heading: string
  variables: Readonly<Record<string, string>>
}

/** The variables that stand in the text of an environment file. An empty one is one that is not set. */
export function readVariables(text: string): Record<string, string> {
  const lines = Object.entries(parseEnv(text) as Record<string, string>)
  return Object.fromEntries(lines.filter(([, value]) => value !== ''))
}

/**
 * `text` with the lines of `sections` that it does not have yet. Existing lines stay as they are, but for
 * empty ones, which are filled where they stand, and for those of `growing`, whose values may have become longer. Pure.
 * @param file for messages
 * @throws ConfigurationError that names a variable that has another value there
 */
export function completeEnv(
  text: string,
  sections: readonly Section[],
  { file, growing }: { file: string; growing: readonly string[] },
): string {
  let whole = text
  for (const { heading, variables } of sections) {
    const there = readVariables(whole)
    const missing = Object.entries(variables).filter(([name, value]) => {
      const known = there[name]
      if (known === value) return false
      if (known !== undefined && !(growing.includes(name) && value.startsWith(known))) {
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

/** The text of `file`, empty if there is none. */
export function readEnvFile(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

/** Writes `text` into `file`, all of it or nothing. Only the file's owner may read it. */
export function writeEnvFile(file: string, text: string): void {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) {
    if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600)
    return
  }
  const aside = `${file}.new`
  rmSync(aside, { force: true })
  writeFileSync(aside, text, { mode: 0o600, flush: true })
  renameSync(aside, file)
}

/**
 * The part of the text that sets a variable, without `export` in front of it and without a comment behind it. Of several
 * lines the last one counts.
 */
function findLine(text: string, name: string): { start: number; end: number } | undefined {
  const setting = new RegExp(`^([ \\t]*(?:export[ \\t]+)?)${name}[ \\t]*=.*?(?=[ \\t]+#|$)`, 'gm')
  const line = [...text.matchAll(setting)].at(-1)
  return line && { start: line.index + (line[1] ?? '').length, end: line.index + line[0].length }
}

/** A line that Node, Next and Docker read alike. */
function format(name: string, value: string): string {
  const line = /^[\w.:/,@-]+$/.test(value) ? `${name}=${value}` : `${name}='${value}'`
  if (readVariables(line)[name] !== value) throw new ConfigurationError(name, 'cannot be written into a file')
  return line
}
