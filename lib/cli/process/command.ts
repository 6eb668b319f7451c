import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { ConfigurationError } from '#lib/config/environment.ts'

/** A command: its usage, and the function that runs it. */
interface Command<Options extends ParseArgsOptionsConfig> {
  /** the text that --help prints */
  usage: string
  options: Options
  run(values: Values<Options>, positionals: string[]): Promise<void> | void
  /** the text for an error other than a ConfigurationError; by default its message */
  explain?: (error: unknown) => unknown
}

type Values<Options extends ParseArgsOptionsConfig> = ReturnType<typeof parseArgs<{ options: Options }>>['values']

/** Runs the command of this process. If it fails, prints the reason without a stack and exits with 1. */
export async function runCommand<const Options extends ParseArgsOptionsConfig>(
  command: Command<Options>,
): Promise<void> {
  const { usage, options, run, explain = messageOf } = command
  try {
    const parsed = parseArgs({ options: { ...options, help: { type: 'boolean' } }, allowPositionals: true })
    if ('help' in parsed.values) return console.log(usage)
    await run(parsed.values as Values<Options>, parsed.positionals)
  } catch (error) {
    console.error(error instanceof ConfigurationError ? error.message : explain(error))
    process.exit(1)
  }
}

export function messageOf(error: unknown): unknown {
  return error instanceof Error ? error.message : error
}
