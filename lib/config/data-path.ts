/**
 * The path of `name` in a folder under DATA_DIR. Not `join` of node:path: a build that traces what may be read
 * (`.next/standalone`) takes that for every file of that name in the project, and would carry keys and ledgers away.
 */
export function dataPath(directory: string, name: string): string {
  return `${directory}/${name}`
}
