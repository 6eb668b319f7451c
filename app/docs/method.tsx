const COLOURS: Record<string, string> = {
  GET: 'text-accent-strong bg-accent-wash',
  POST: 'text-good bg-good-wash',
  PATCH: 'text-busy bg-busy-wash',
  DELETE: 'text-bad bg-bad-wash',
}

/** The method of a route. */
export function Method({ name, isSmall = false }: { name: string; isSmall?: boolean }) {
  const size = isSmall ? 'w-[2.9rem] py-px text-[0.625rem]' : 'px-2 py-0.5 text-xs'
  return (
    <span className={`shrink-0 rounded text-center font-mono font-semibold ${size} ${COLOURS[name] ?? 'bg-raised'}`}>
      {name}
    </span>
  )
}
