/** A parsed scrape: the type of each family, and each sample by `name{labels}`. */
interface Exposition {
  types: Map<string, string>
  samples: Map<string, number>
}

const SAMPLE = /^([a-z_][a-z0-9_]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (Nan|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/

/** Parses text format 0.0.4 strictly: HELP, TYPE, then the samples of that family without duplicates. */
export function readExposition(text: string): Exposition {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const types = new Map<string, string>()
  const samples = new Map<string, number>()
  let family = ''
  for (const line of text.split('\n').filter(Boolean)) {
    const [, help] = /^# HELP ([a-z_][a-z0-9_]*) \S.*$/.exec(line) ?? []
    const [, typed, type] = /^# TYPE ([a-z_][a-z0-9_]*) (counter|gauge|histogram)$/.exec(line) ?? []
    if (help !== undefined) {
      if (types.has(help)) throw new Error(`${help} comes twice`)
      family = help
    } else if (typed !== undefined && type !== undefined) {
      if (typed !== family) throw new Error(`${typed} has no HELP before it`)
      types.set(typed, type)
    } else {
      const [, name = '', labels = '', value] = SAMPLE.exec(line) ?? []
      const type = types.get(family)
      const own = type === 'histogram' ? name.replace(/_(bucket|sum|count)$/, '') : name
      if (own !== family || type === undefined) throw new Error(`not a sample of ${family}: ${line}`)
      if (samples.has(name + labels)) throw new Error(`twice: ${line}`)
      samples.set(name + labels, Number(value))
    }
  }
  return { types, samples }
}
