import { inspect } from 'node:util'
import { printable } from '#lib/text/printable.ts'

/**
 * Prints a result to standard output. Every command prints through this file, so that text from a file
 * or from the network reaches a terminal as text, and never as a command that moves its cursor or changes its colours.
 */
export function print(text: unknown): void {
  console.log(readable(text))
}

/** Writes a document to standard output, for a file or another program: without a line feed of this function. */
export function writeDocument(text: string): void {
  process.stdout.write(printable(text))
}

/** Prints a message to standard error. */
export function printMessage(text: unknown): void {
  console.error(readable(text))
}

/** Values other than text, such as errors, are shown as the console shows them. */
const readable = (value: unknown): string => printable(typeof value === 'string' ? value : inspect(value))
