import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { ConfigurationError } from '#lib/env.ts'

/** Lines to have in an environment file, under a heading each. */
export interface Section {
  heading: string
  variables: Readonly<Record<string, string>>
}

/** The variables that stand in the text of an environment file. */
export function readVariables(text: string): Record<string, string> {
  return parseEnv(text) as Record<string, string>
}

/**
 * `text` with the lines of `sections` that it does not have yet. Lines that are there stay as they are, whoever wrote
 * them, but for those of `growing`, whose values may have become longer. Pure.
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
      if (there[name] === undefined || there[name] === value) return there[name] === undefined
      if (!growing.includes(name) || !value.startsWith(there[name])) {
        throw new ConfigurationError(name, `has another value in ${file}: name another file, or remove the line`)
      }
      whole = whole.replace(lineOf(name), () => format(name, value))
      return false
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

/** Puts `text` into `file`, all of it or nothing, for its owner's eyes alone. */
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

function lineOf(name: string): RegExp {
  return new RegExp(`^[ \\t]*(export )?${name}[ \\t]*=.*$`, 'm')
}

/** A line that Node, Next and Docker read alike. */
function format(name: string, value: string): string {
  const line = /^[\w.:/,@-]+$/.test(value) ? `${name}=${value}` : `${name}='${value}'`
  if (readVariables(line)[name] !== value) throw new ConfigurationError(name, 'cannot be written into a file')
  return line
}
