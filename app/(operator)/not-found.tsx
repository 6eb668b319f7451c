import NotFound from '../not-found.tsx'
import { Frame } from './frame.tsx'
import { PageLink } from './record-links.tsx'
import { readOperator } from './require-operator.ts'
import { Empty } from './table.tsx'

export const metadata = { title: 'Not found' }

/** The page for a record that does not exist, inside the dashboard's frame. */
export default async function RecordNotFound() {
  const running = await readOperator()
  if (!running) return <NotFound />
  return (
    <Frame title="There is nothing here" network={running.settings.network.name}>
      <Empty title="404">
        <p>The address may be mistyped, or the record has been removed.</p>
        <p>
          <PageLink href="/overview" name="Overview" className="" />
        </p>
      </Empty>
    </Frame>
  )
}
