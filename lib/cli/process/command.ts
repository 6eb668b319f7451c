import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { ConfigurationError } from '#lib/config/environment.ts'
import { print, printMessage } from './output.ts'

/** A command: its usage, and the function that runs it. */
interface Command<Options extends ParseArgsOptionsConfig> {
  /** the text that --help prints */
  usage: string
  options: Options
  run(values: Values<Options>, positionals: string[]): Promise<void> | void
  /** the text for an error other than a ConfigurationError; by default its message */
  explain?: (error: unknown, values: Partial<Values<Options>>) => unknown
}

export type Values<Options extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ options: Options }>
>['values']

/** Runs the command of this process. If it fails, prints the reason without a stack and exits with 1. */
export async function runCommand<const Options extends ParseArgsOptionsConfig>(
  command: Command<Options>,
): Promise<void> {
  const { usage, options, run, explain = messageOf } = command
  let values: Partial<Values<Options>> = {}
  try {
    const parsed = parseArgs({ options: { ...options, help: { type: 'boolean' } }, allowPositionals: true })
    if ('help' in parsed.values) return print(usage)
    const given = parsed.values as Values<Options>
    values = given
    await run(given, parsed.positionals)
  } catch (error) {
    if (error instanceof UsageError) printMessage(`${error.message}\n\n${usage}`.trimStart())
    else printMessage(error instanceof ConfigurationError ? error.message : explain(error, values))
    process.exit(1)
  }
}

/** The output of a command. If `hasFailed`, it is printed all the same, and the process exits with 1. */
export interface Outcome {
  text: string
  hasFailed: boolean
}

/** Runs the command that the first argument names, and prints its result, unless that is empty. */
export function runCommands<const Options extends ParseArgsOptionsConfig>(
  given: Omit<Command<Options>, 'run'> & {
    commands: Readonly<Record<string, (values: Values<Options>) => Promise<string | Outcome>>>
  },
): Promise<void> {
  const { commands } = given
  return runCommand({
    ...given,
    run: async (values, [name = '']) => {
      const command = Object.hasOwn(commands, name) ? commands[name] : undefined
      if (!command) throw new UsageError()
      const result = await command(values)
      const text = typeof result === 'string' ? result : result.text
      if (text !== '') print(text)
      if (typeof result !== 'string' && result.hasFailed) process.exitCode = 1
    },
  })
}

/** The command was called in another way than its usage says, which is printed below the message. */
export class UsageError extends Error {}

/** The value of a required option. */
export function need<Name extends string>(values: { readonly [_ in Name]?: string | undefined }, option: Name): string {
  const value = values[option]
  if (value === undefined) throw new UsageError(`--${option} is missing`)
  return value
}

export function messageOf(error: unknown): unknown {
  return error instanceof Error ? error.message : error
}
