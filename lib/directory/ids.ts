const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether `text` has the shape of an id of ours. What has another shape is simply not found. */
export function isId(text: string): boolean {
  return ID.test(text)
}
