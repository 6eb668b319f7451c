/** The statuses from which `moves` allow a move to `to`. */
export function statusesBefore<Status extends string>(moves: Record<Status, readonly Status[]>, to: Status): Status[] {
  const statuses = Object.keys(moves) as Status[]
  return statuses.filter((from) => moves[from].includes(to))
}
