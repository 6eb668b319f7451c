import type { Metadata } from 'next'
import { missing } from '#app/missing.ts'
import { reference } from '#lib/api/reference/reference.ts'
import { NoSuchPage } from '../no-such-page.tsx'
import { OperationView } from '../operation-view.tsx'
import { Prose } from '../prose.tsx'
import { startedService } from '../started-service.ts'

async function findGroup(params: PageProps<'/docs/[group]'>['params']) {
  const { group } = await params
  return reference().find(({ slug }) => slug === group)
}

export async function generateMetadata({ params }: PageProps<'/docs/[group]'>): Promise<Metadata> {
  const group = await findGroup(params)
  return { title: `${group?.name ?? 'Not found'} · API reference` }
}

/** A section of the reference: its operations. */
export default async function GroupPage({ params }: PageProps<'/docs/[group]'>) {
  const { settings } = await startedService()
  const group = await findGroup(params)
  if (!group) return missing(<NoSuchPage />)
  const { name, description, operations } = group
  return (
    <>
      <h1 className="text-2xl font-semibold tracking-tight">{name}</h1>
      <p className="mt-2 max-w-prose text-soft">
        <Prose text={description} />
      </p>
      {operations.map((operation) => (
        <OperationView key={operation.id} operation={operation} baseUrl={`${settings.publicUrl}/api`} />
      ))}
    </>
  )
}
