/** The value of a JSON text; undefined for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The largest file that is accepted from others, in bytes, and how deep its objects and arrays may be nested. */
export const MAX_FILE_BYTES = 1_048_576
const MAX_LEVELS = 64

/**
 * Why a JSON text from others must not be parsed, or undefined. Recursive code after the parser, such as a schema, fails on
 * a deeply nested value with a stack overflow.
 */
export function excessOf(text: string): string | undefined {
  const isLarge = text.length > MAX_FILE_BYTES || new TextEncoder().encode(text).length > MAX_FILE_BYTES
  if (isLarge) return 'is larger than 1 MB'
  let level = 0
  for (const [token] of text.matchAll(/"(?:[^"\\]+|\\.)*"?|[[\]{}]/gs)) {
    if (token === '[' || token === '{') level += 1
    else if (token === ']' || token === '}') level -= 1
    if (level > MAX_LEVELS) return `is nested deeper than ${MAX_LEVELS} levels`
  }
  return undefined
}
