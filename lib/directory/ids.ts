const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether `text` is a UUID in lower case, like every id. Callers treat any other text as not found. */
export function isId(text: string): boolean {
  return ID.test(text)
}
